"""The retry rule for failed model calls. Pure: the driver counts the attempts, in rows."""

from dataclasses import dataclass

from dominds.llm.provider import (
    MalformedStream,
    NetworkFailed,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
)

MAX_TRIES = 5
MAX_ADVISED_SECONDS = 60.0  # a longer wait that a provider asks for is cut to this
ADVICE_SPREAD_SECONDS = 1.0  # jitter: dialogs that were told to wait equally long do not all come back at once


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from ``first_seconds`` up to ``longest_seconds``. ``tries`` includes the first call."""

    first_seconds: float
    longest_seconds: float
    tries: int = MAX_TRIES


BACKOFFS: dict[type[ProviderError], Backoff] = {
    RateLimited: Backoff(first_seconds=4.0, longest_seconds=60.0),
    Overloaded: Backoff(first_seconds=2.0, longest_seconds=30.0),
    NetworkFailed: Backoff(first_seconds=1.0, longest_seconds=15.0),
    # Some servers answer every over-long request with the same broken or endless stream: give up sooner.
    MalformedStream: Backoff(first_seconds=1.0, longest_seconds=10.0, tries=3),
    ProviderTimeout: Backoff(first_seconds=2.0, longest_seconds=30.0, tries=3),
}


def delay_before_retry(error: ProviderError, attempt: int, random: float) -> float | None:
    """Return the seconds to wait after failed attempt number ``attempt``, which counts from 1, or None to give up.

    ``random`` is uniform in [0, 1), for full jitter as in "Exponential Backoff And Jitter" (AWS, 2015). If the provider
    gave advice, it replaces the exponential delay.
    """
    backoff = next((BACKOFFS[kind] for kind in type(error).__mro__ if kind in BACKOFFS), None)
    if backoff is None or not error.retryable or attempt >= backoff.tries:
        return None
    if error.retry_after_seconds is not None and error.retry_after_seconds > 0:
        return min(error.retry_after_seconds, MAX_ADVISED_SECONDS) + random * ADVICE_SPREAD_SECONDS
    doubled = backoff.first_seconds * 2.0 ** (max(attempt, 1) - 1)
    return random * min(backoff.longest_seconds, doubled)
