"""Levels of context health."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.usage import Usage, UsageUnavailable
from health.levels import Level, Thresholds, UnknownReason, judge

tokens = st.integers(1, 3_000_000)
limits = st.integers(2, 2_000_000)
maybe_limits = st.none() | limits
thresholds = st.builds(Thresholds, maybe_limits, maybe_limits, maybe_limits)
RANK = [Level.HEALTHY, Level.CAUTION, Level.CRITICAL]


def level(prompt_tokens: int, limits: Thresholds) -> Level:
    return judge(Usage(prompt_tokens, 0), limits).level


# 128,000: optimal 100,000 by default, critical floor(0.9 x 128,000) = 115,200;
# both are ceilings that still belong below
@pytest.mark.parametrize(
    ("prompt_tokens", "expected"),
    [
        (50, Level.HEALTHY),
        (100_000, Level.HEALTHY),
        (100_001, Level.CAUTION),
        (115_200, Level.CAUTION),
        (115_201, Level.CRITICAL),
    ],
)
def test_levels_of_a_window_of_128k(prompt_tokens: int, expected: Level) -> None:
    assert level(prompt_tokens, Thresholds(128_000)) is expected


# 32,768: critical floor(29,491.2) = 29,491 lies below optimal 100,000, and is tested first
@pytest.mark.parametrize(("prompt_tokens", "expected"), [(29_491, Level.HEALTHY), (29_492, Level.CRITICAL)])
def test_a_small_window_has_no_caution_and_turns_red_in_time(prompt_tokens: int, expected: Level) -> None:
    assert level(prompt_tokens, Thresholds(32_768)) is expected


@pytest.mark.parametrize(
    ("limit", "critical"), [(128_000, 115_200), (200_001, 180_000), (9, 8), (1, 0), (1_048_576, 943_718)]
)
def test_critical_is_nine_tenths_of_the_limit_rounded_down(limit: int, critical: int) -> None:
    assert Thresholds(limit).effective_critical_max == critical


def test_explicit_thresholds_win_over_defaults() -> None:
    own = Thresholds(128_000, optimal_max=1_000, critical_max=2_000)
    assert [level(n, own) for n in (1_000, 1_001, 2_000, 2_001)] == [
        Level.HEALTHY,
        Level.CAUTION,
        Level.CAUTION,
        Level.CRITICAL,
    ]


def test_ratios_are_of_the_limit_and_of_the_optimum() -> None:
    judgement = judge(Usage(50_000, 10), Thresholds(128_000))
    assert judgement.hard_util == 50_000 / 128_000
    assert judgement.optimal_util == 0.5


def test_unreported_usage_is_unknown_and_not_zero() -> None:
    judgement = judge(UsageUnavailable(), Thresholds(128_000))
    assert (judgement.level, judgement.reason) == (Level.UNKNOWN, UnknownReason.USAGE_UNAVAILABLE)
    assert (judgement.hard_util, judgement.optimal_util) == (None, None)


def test_an_unknown_limit_is_unknown_with_the_ratio_that_is_known() -> None:
    judgement = judge(Usage(50_000, 0), Thresholds(None))
    assert (judgement.level, judgement.reason) == (Level.UNKNOWN, UnknownReason.LIMIT_UNKNOWN)
    assert (judgement.hard_util, judgement.optimal_util) == (None, 0.5)


def test_suspected_truncation_hides_the_level_but_not_the_numbers() -> None:
    judgement = judge(Usage(64_000, 0), Thresholds(128_000), truncation_suspected=True)
    assert (judgement.level, judgement.reason) == (Level.UNKNOWN, UnknownReason.TRUNCATION_SUSPECTED)
    assert judgement.hard_util == 0.5


@given(smaller=tokens, extra=st.integers(0, 1_000_000), limit=limits, optimal=maybe_limits, critical=maybe_limits)
def test_a_longer_prompt_is_never_healthier(
    smaller: int, extra: int, limit: int, optimal: int | None, critical: int | None
) -> None:
    own = Thresholds(limit, optimal, critical)
    before, after = level(smaller, own), level(smaller + extra, own)
    assert RANK.index(before) <= RANK.index(after)


@given(prompt_tokens=tokens, limit=limits)
def test_with_a_limit_and_usage_there_is_always_a_colour(prompt_tokens: int, limit: int) -> None:
    assert level(prompt_tokens, Thresholds(limit)) is not Level.UNKNOWN


@given(prompt_tokens=tokens, own=thresholds, suspected=st.booleans())
def test_a_reason_stands_exactly_beside_unknown(prompt_tokens: int, own: Thresholds, suspected: bool) -> None:
    judgement = judge(Usage(prompt_tokens, 0), own, truncation_suspected=suspected)
    assert (judgement.level is Level.UNKNOWN) is (judgement.reason is not None)


@given(prompt_tokens=tokens, limit=limits)
def test_completion_tokens_never_change_the_level(prompt_tokens: int, limit: int) -> None:
    own = Thresholds(limit)
    assert judge(Usage(prompt_tokens, 999_999), own) == judge(Usage(prompt_tokens, 0), own)


@given(own=thresholds, prompt_tokens=tokens)
def test_without_a_caution_band_nothing_is_yellow(own: Thresholds, prompt_tokens: int) -> None:
    if not own.has_caution_band:
        assert level(prompt_tokens, own) is not Level.CAUTION


def test_an_accepted_prompt_shorter_than_the_window_moves_no_threshold() -> None:
    assert Thresholds(1_050_000, input_limit=922_000).effective_critical_max == 945_000
