"""Episodes of forced clears as rules: what keeps one open, what counts against it, what ends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.levels import Level
from remediation.context import Context
from remediation.decisions import ClearMind, Fail, ForceClear, Suspend
from remediation.guidance import Counters, after_clear, after_kept, clears_exhausted, judge_last_clear
from remediation.policies import decide, none

levels = st.sampled_from(list(Level))


@given(level=levels)
def test_an_open_episode_forces_whatever_the_level_is(level: Level) -> None:
    decision = decide(none.POLICY, Context(level=level, clear_due=True, failed_clears=1))
    assert isinstance(decision, ForceClear)


@given(level=levels, failed=st.integers(3, 9))
def test_an_exhausted_episode_asks_a_human_whatever_the_level_is(level: Level, failed: int) -> None:
    assert isinstance(decide(none.POLICY, Context(level=level, clear_due=True, failed_clears=failed)), Suspend)


@pytest.mark.parametrize("level", [Level.HEALTHY, Level.CAUTION, Level.CRITICAL])
def test_refusals_of_a_closed_episode_do_not_count_for_the_next(level: Level) -> None:
    assert after_kept(Counters(failed_clears=2), level, guided=False).failed_clears == 0


def test_a_gray_report_neither_proves_nor_disproves_a_clear() -> None:
    unproven = after_clear(Counters(failed_clears=1), forced=True)
    gray = after_kept(unproven, Level.UNKNOWN, guided=False)
    assert (gray.failed_clears, gray.clear_unproven) == (1, True)
    assert after_kept(gray, Level.CRITICAL, guided=False).failed_clears == 2
    assert after_kept(gray, Level.HEALTHY, guided=False).failed_clears == 0


def test_three_clears_that_did_not_help_exhaust_an_episode() -> None:
    counters = Counters()
    for _ in range(3):
        assert not clears_exhausted(counters)
        counters = judge_last_clear(after_clear(counters, forced=True), Level.CRITICAL)
    assert clears_exhausted(counters)


def test_a_countdown_clears_on_overflow_twice() -> None:
    over = [
        decide(none.POLICY, Context(level=Level.UNKNOWN, countdown=True, overflowed=True, failed_clears=failed))
        for failed in range(4)
    ]
    assert [type(decision) for decision in over] == [ClearMind, ClearMind, ClearMind, Fail]
