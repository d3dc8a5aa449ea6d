import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from dominds.llm.retry import BACKOFFS, delay_before_retry

retryable = st.sampled_from([RateLimited, Overloaded, NetworkFailed, MalformedStream, ProviderTimeout])
fractions = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize("kind", [AuthFailed, ContextOverflow, RequestRefused, StreamAborted, ProviderError])
def test_what_waiting_cannot_cure_is_not_tried_again(kind: type[ProviderError]) -> None:
    assert delay_before_retry(kind("no"), attempt=1, random=0.5) is None


@pytest.mark.parametrize(
    ("kind", "attempt", "longest"),
    [
        (RateLimited, 1, 4),
        (RateLimited, 4, 32),  # 4 x 2^3
        (Overloaded, 1, 2),
        (Overloaded, 4, 16),
        (NetworkFailed, 4, 8),
        (MalformedStream, 2, 2),
        (ProviderTimeout, 2, 4),
    ],
)
def test_the_delay_doubles_with_each_attempt(kind: type[ProviderError], attempt: int, longest: float) -> None:
    assert delay_before_retry(kind("busy"), attempt, random=1.0) == longest
    assert delay_before_retry(kind("busy"), attempt, random=0.0) == 0


@given(kind=retryable, attempt=st.integers(1, 10), random=fractions)
def test_delays_are_bounded_and_tries_are_counted(kind: type[ProviderError], attempt: int, random: float) -> None:
    delay = delay_before_retry(kind("busy"), attempt, random)
    assert (delay is None) == (attempt >= BACKOFFS[kind].tries)
    assert delay is None or 0 <= delay <= 60


@pytest.mark.parametrize(("advised", "delay"), [(0.5, 1.0), (20, 20.5), (60, 60.5), (3600, 60.5)])
def test_the_providers_advice_holds_up_to_a_minute(advised: float, delay: float) -> None:
    assert delay_before_retry(RateLimited("slow", retry_after_seconds=advised), 1, random=0.5) == delay


def test_the_fifth_failure_is_the_last() -> None:
    error = RateLimited("slow", retry_after_seconds=1)
    assert [delay_before_retry(error, attempt, 0.0) for attempt in (1, 4, 5)] == [1, 1, None]
