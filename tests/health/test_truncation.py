"""When a provider's count says that it dropped something."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.truncation import SentRequest, is_far_below, truncation_suspected

BEFORE = SentRequest(frame="f", base="1:0", chars=40_000, guided=False, prompt_tokens=10_000)


@pytest.mark.parametrize(
    ("chars", "prompt_tokens", "suspected"),
    [
        (40_000, 10_000, False),  # an equal number alone proves nothing
        (41_000, 10_200, False),  # grown
        (41_000, 9_700, False),  # fell by 300, no more than the 300 completion tokens: dropped reasoning explains it
        (41_000, 9_699, True),  # fell by 301
        (47_999, 10_000, False),  # did not grow, but less than 8,000 characters were added
        (48_000, 10_000, True),  # did not grow although 8,000 were added
        (48_000, 9_900, True),
        (48_000, 10_001, False),
    ],
)
def test_a_request_that_extends_the_last_one(chars: int, prompt_tokens: int, suspected: bool) -> None:
    current = replace(BEFORE, chars=chars, prompt_tokens=prompt_tokens)
    assert truncation_suspected(BEFORE, current, round_completion_tokens=300) is suspected


@pytest.mark.parametrize(
    "change",
    [{"frame": "other"}, {"base": "1:7"}, {"base": "2:0"}, {"chars": 39_999}, {"guided": True}],
    ids=["another model or tools", "a rewrite", "a new round", "shorter", "guided"],
)
def test_only_like_is_compared_with_like(change: dict[str, object]) -> None:
    current = replace(BEFORE, prompt_tokens=10, **change)  # type: ignore[arg-type]
    assert not truncation_suspected(BEFORE, current, 0)


def test_nothing_is_compared_with_a_guided_request_or_with_none() -> None:
    current = replace(BEFORE, chars=60_000, prompt_tokens=10)
    assert not truncation_suspected(replace(BEFORE, guided=True), current, 0)
    assert not truncation_suspected(None, current, 0)


@given(growth=st.integers(0, 1_000_000), more=st.integers(1, 1_000_000), completion=st.integers(0, 100_000))
def test_a_prompt_that_grew_is_never_suspected(growth: int, more: int, completion: int) -> None:
    current = replace(BEFORE, chars=BEFORE.chars + growth, prompt_tokens=BEFORE.prompt_tokens + more)
    assert not truncation_suspected(BEFORE, current, completion)


@pytest.mark.parametrize(
    ("chars", "prompt_tokens", "far"),
    [(8_000, 800, False), (8_001, 800, True), (7_999, 1, False), (60_000, 2_048, True), (60_000, 11_500, False)],
)
def test_a_report_is_held_against_the_text_alone(chars: int, prompt_tokens: int, far: bool) -> None:
    assert is_far_below(chars, prompt_tokens) is far
