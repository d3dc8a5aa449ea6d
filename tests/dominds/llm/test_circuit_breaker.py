"""When a model's circuit opens, for how long, and what closes it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.circuit_breaker import FAILURES, FIRST_SECONDS, LONGEST_SECONDS, Circuit, Circuits, after_call
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    MalformedStream,
    NetworkFailed,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    RequestRefused,
    StreamAborted,
)
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from dominds.llm.providers.scripted import SCRIPTED

MODEL = ModelInfo("stub", "model", "Model", OPENAI_COMPATIBLE)
OTHER = ModelInfo("stub", "other", "Other", OPENAI_COMPATIBLE)
CLOSED = Circuit()
ends = st.one_of(
    st.none(),
    st.builds(
        lambda kind, advice: kind("no", retry_after_seconds=advice),
        st.sampled_from([RateLimited, Overloaded, NetworkFailed, ProviderTimeout, AuthFailed, MalformedStream]),
        st.none() | st.floats(0, 1e6),
    ),
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def calls(errors: Sequence[ProviderError | None], circuit: Circuit = CLOSED, now: float = 0.0) -> Circuit:
    for error in errors:
        circuit = after_call(circuit, error, now)
    return circuit


@pytest.mark.parametrize("kind", [RateLimited, Overloaded, NetworkFailed, ProviderTimeout])
def test_five_failures_in_a_row_begin_a_rest(kind: type[ProviderError]) -> None:
    almost = calls([kind("down")] * (FAILURES - 1))
    assert almost.open_until < 0
    assert after_call(almost, kind("down"), 7.0) == Circuit(FAILURES, 1, 7.0 + FIRST_SECONDS, "down")


@pytest.mark.parametrize("answer", [None, RequestRefused("no"), AuthFailed("no"), ContextOverflow("long")])
def test_any_answer_ends_the_row(answer: ProviderError | None) -> None:
    assert calls([*[Overloaded("down")] * (FAILURES - 1), answer]) == CLOSED


@pytest.mark.parametrize("kind", [MalformedStream, StreamAborted])
def test_what_may_be_one_requests_own_says_nothing(kind: type[ProviderError]) -> None:
    almost = calls([Overloaded("down")] * (FAILURES - 1))
    assert after_call(almost, kind("?"), 0.0) == almost


def test_rests_double_until_a_call_is_answered() -> None:
    circuit, now, seconds = calls([NetworkFailed("down")] * (FAILURES - 1)), 0.0, []
    for _ in range(6):
        circuit = after_call(circuit, NetworkFailed("down"), now)
        seconds.append(circuit.open_until - now)
        now = circuit.open_until
    assert seconds == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert after_call(circuit, None, now) == CLOSED


def test_a_running_call_extends_a_pause_only_on_advice() -> None:
    open_circuits = calls([Overloaded("down")] * FAILURES)
    assert after_call(open_circuits, Overloaded("down"), 1.0) == open_circuits
    advised = after_call(open_circuits, RateLimited("busy", retry_after_seconds=30.0), 1.0)
    assert (advised.open_until, advised.openings) == (31.0, 1)


def test_the_providers_advice_counts_for_every_dialog() -> None:
    assert calls([RateLimited("busy", retry_after_seconds=40.0)] * FAILURES).open_until == 40.0


@given(st.lists(st.tuples(ends, st.floats(0, 50)), max_size=60))
def test_a_rest_is_never_longer_than_a_minute(story: list[tuple[ProviderError | None, float]]) -> None:
    circuit, now = Circuit(), 0.0
    for error, later in story:
        now += later
        circuit = after_call(circuit, error, now)
        assert circuit.open_until <= now + LONGEST_SECONDS
        assert (circuit.openings > 0) == (circuit.failures >= FAILURES)


def test_models_rest_one_by_one_and_scripted_ones_never() -> None:
    clock = Clock()
    known = Circuits(clock)
    scripted = ModelInfo("demo", "script", "Script", SCRIPTED)
    for model in [MODEL, scripted] * FAILURES:
        known.note(model, Overloaded("down"))
    assert known.open_circuit(OTHER) is None
    assert known.open_circuit(scripted) is None
    rest = known.open_circuit(MODEL)
    assert rest is not None
    assert known.open_circuits() == [rest]
    assert str(rest) == "stub/model is not called for now: its last 5 calls failed. down"
    clock.now += FIRST_SECONDS
    assert known.open_circuit(MODEL) is None
    known.note(MODEL, None)
    assert known.open_circuits() == []
