"""Circuit breaker: all dialogs of a worker leave a model alone for a while if it fails again and again.

Without it, each of fifty dialogs would call a provider that is down five times, and give up within seconds. There is
no token bucket beside it: providers tell their limits only by HTTP 429, and the circuit keeps the ``Retry-After`` of
such an answer for every dialog of the model.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dominds.llm.models.model import ModelInfo
from dominds.llm.provider import (
    MalformedStream,
    NetworkFailed,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    StreamAborted,
)
from dominds.llm.retry import MAX_ADVISED_SECONDS, MAX_TRIES

FAILURES = MAX_TRIES  # in a row, over all dialogs; one dialog alone reaches this number only by its last try
FIRST_SECONDS = 5.0
LONGEST_SECONDS = 60.0
NOT_CALLED = "is not called for now"
FAULTS_OF_THE_PROVIDER = (RateLimited, Overloaded, NetworkFailed, ProviderTimeout)
SAYS_NOTHING = (StreamAborted, MalformedStream)  # we stopped the call, or this one request may be the cause


@dataclass(frozen=True, slots=True)
class Circuit:
    """A summary of the last calls to one model. ``open_until`` is in seconds of the caller's monotonic clock."""

    failures: int = 0
    openings: int = 0  # how often it opened without a successful call since
    open_until: float = float("-inf")
    reason: str = ""


def after_call(circuit: Circuit, error: ProviderError | None, now: float) -> Circuit:
    """Return the circuit after a call.

    After its open time every dialog may call the model again. The next failure opens the circuit for twice as long.
    """
    if isinstance(error, SAYS_NOTHING):
        return circuit
    if not isinstance(error, FAULTS_OF_THE_PROVIDER):
        return Circuit()  # even a refusal shows that the provider answers
    advised = min(error.retry_after_seconds or 0.0, MAX_ADVISED_SECONDS)
    if now < circuit.open_until:  # the call was running when the circuit opened
        return replace(circuit, open_until=max(circuit.open_until, now + advised))
    failures = circuit.failures + 1
    if failures < FAILURES:
        return replace(circuit, failures=failures, reason=str(error))
    seconds = max(advised, min(FIRST_SECONDS * 2.0**circuit.openings, LONGEST_SECONDS))
    return Circuit(failures, circuit.openings + 1, now + seconds, str(error))


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    """A model that must not be called now, with the reason."""

    model: str
    seconds: float
    failures: int
    reason: str

    def __str__(self) -> str:
        return f"{self.model} {NOT_CALLED}: its last {self.failures} calls failed. {self.reason}"


@dataclass
class Circuits:
    """The circuits of one process. Scripted models have none, since there is no server to spare."""

    clock: Callable[[], float] = time.monotonic
    _circuits: dict[ModelInfo, Circuit] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, model: ModelInfo, error: ProviderError | None) -> None:
        if not model.kind.is_server:
            return
        with self._lock:
            circuit = after_call(self._circuits.get(model, Circuit()), error, self.clock())
            if circuit == Circuit():
                self._circuits.pop(model, None)
            else:
                self._circuits[model] = circuit

    def open_circuit(self, model: ModelInfo) -> OpenCircuit | None:
        with self._lock:
            return self._open_circuit(model, self._circuits.get(model, Circuit()))

    def open_circuits(self) -> list[OpenCircuit]:
        with self._lock:
            return [circuit for pair in self._circuits.items() if (circuit := self._open_circuit(*pair)) is not None]

    def _open_circuit(self, model: ModelInfo, circuit: Circuit) -> OpenCircuit | None:
        left = circuit.open_until - self.clock()
        if left <= 0:
            return None
        return OpenCircuit(f"{model.provider_id}/{model.model_id}", left, circuit.failures, circuit.reason)


circuits = Circuits()
