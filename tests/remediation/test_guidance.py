"""Context health's guidance: when it is due, and which output a forced clear accepts."""

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.messages import ToolCall
from dominds.visible_text import is_blank
from health.levels import Level
from remediation.context import Context, RefusedClear
from remediation.decisions import Discard, Keep
from remediation.guidance import (
    CLEAR_ONLY,
    CLEAR_OR_REMIND,
    COUNTDOWN_GENERATIONS,
    Counters,
    after_clear,
    after_discarded,
    after_kept,
    countdown_guidance,
    forced_clear,
    guidance_due,
    judge_forced,
    judge_last_clear,
    package_of,
)

GREEN, YELLOW, RED, GRAY = Level.HEALTHY, Level.CAUTION, Level.CRITICAL, Level.UNKNOWN
levels = st.sampled_from([GREEN, YELLOW, RED, GRAY])


def guided_ones(reports: Iterable[Level], cadence: int = 10) -> list[int]:
    """Which generations carry guidance, when generation ``n`` reports ``reports[n]`` and is kept."""
    counters, level, guided_at = Counters(), GREEN, []
    for number, report in enumerate(reports):
        context = Context(level, kept_since_guidance=counters.kept_since_guidance, cadence=cadence)
        guided = level is YELLOW and guidance_due(context)
        if guided:
            guided_at.append(number)
        counters, level = after_kept(counters, report, guided=guided), report
    return guided_at


def test_guidance_comes_on_entry_and_after_every_ten_kept_generations() -> None:
    # the first report of yellow is generation 0's, so generation 1 is the first that can be guided
    assert guided_ones([YELLOW] * 25) == [1, 11, 21]


def test_the_cadence_is_the_models() -> None:
    assert guided_ones([YELLOW] * 10, cadence=3) == [1, 4, 7]


def test_gray_neither_advances_nor_resets_the_cadence() -> None:
    # kept since guidance: 4 yellow ones before the gap, of which 1 is the guided; 3 gray ones do not count, nor are
    # they guided; the tenth yellow one is generation 13, and the next after it is guided
    assert guided_ones([YELLOW] * 5 + [GRAY] * 3 + [YELLOW] * 8) == [1, 14]


def test_guidance_that_is_answered_without_usage_was_still_given() -> None:
    assert guided_ones([YELLOW, GRAY, *[YELLOW] * 12]) == [1, 12]


def test_green_ends_caution_and_the_next_entry_is_guided() -> None:
    assert guided_ones([YELLOW] * 4 + [GREEN] * 2 + [YELLOW] * 3) == [1, 7]


def test_a_discarded_attempt_leaves_the_cadence_alone() -> None:
    counters = Counters(kept_since_guidance=4)
    assert after_discarded(counters).kept_since_guidance == 4


def test_a_new_round_starts_the_cadence_anew() -> None:
    assert after_clear(Counters(kept_since_guidance=7), forced=False).kept_since_guidance is None


@given(reports=st.lists(levels, max_size=80), cadence=st.integers(1, 15))
def test_only_yellow_is_guided_and_never_twice_within_the_cadence(reports: list[Level], cadence: int) -> None:
    guided = guided_ones(reports, cadence)
    assert all(reports[number - 1] is YELLOW for number in guided)
    for earlier, later in pairwise(guided):
        left = {GREEN, RED} & set(reports[earlier:later])
        assert left or reports[earlier:later].count(YELLOW) >= cadence


@given(
    kept=st.none() | st.integers(0, 30),
    guided=st.integers(0, 5),
    failed=st.integers(0, 3),
    unproven=st.booleans(),
    grays=st.integers(1, 5),
)
def test_gray_reports_freeze_every_counter(
    kept: int | None, guided: int, failed: int, unproven: bool, grays: int
) -> None:
    before = after = Counters(kept, guided, failed, unproven)
    for _ in range(grays):
        after = after_kept(after, GRAY, guided=False)
    assert after == before


# The countdown


def test_guided_critical_generations_are_counted() -> None:
    counters = Counters()
    for _ in range(3):
        counters = after_kept(counters, RED, guided=True)
    assert counters.guided_generations == 3
    assert after_kept(counters, GRAY, guided=False).guided_generations == 3
    assert after_kept(counters, GREEN, guided=False).guided_generations == 0


@pytest.mark.parametrize(
    ("remaining", "words"), [(COUNTDOWN_GENERATIONS, "5 more generations"), (1, "1 more generation,")]
)
def test_the_countdown_says_how_many_are_left(remaining: int, words: str) -> None:
    assert words in countdown_guidance(remaining)


# Clears that did not help


@pytest.mark.parametrize(
    ("level", "failed", "unproven"), [(RED, 2, False), (YELLOW, 0, False), (GREEN, 0, False), (GRAY, 1, True)]
)
def test_the_first_report_after_a_forced_clear_says_whether_it_helped(
    level: Level, failed: int, unproven: bool
) -> None:
    counters = after_clear(Counters(failed_clears=1), forced=True)
    judged = judge_last_clear(counters, level)
    assert (judged.failed_clears, judged.clear_unproven) == (failed, unproven)


def test_a_clear_that_was_not_forced_ends_the_episode() -> None:
    assert after_clear(Counters(failed_clears=2), forced=False) == Counters()


# What a forced attempt may say


def clear(arguments: object) -> ToolCall:
    return ToolCall("1", "clear_mind", arguments if isinstance(arguments, str) else json.dumps(arguments))


GOOD = clear({"reminder_content": "Goal: go on"})
OTHER = ToolCall("2", "add_reminder", '{"content": "x"}')


@pytest.mark.parametrize(
    ("calls", "accepted"),
    [
        ([GOOD], True),
        ([OTHER, GOOD], True),  # the other is not run
        ([], False),
        ([OTHER], False),
        ([GOOD, GOOD], False),
        ([GOOD, clear({"reminder_content": " "})], False),
        ([clear({"reminder_content": ""})], False),
        ([clear({"reminder_content": " \n\t"})], False),
        ([clear({"reminder_content": "\u00a0\u200b\ufeff"})], False),  # nothing of it can be seen
        ([clear({"reminder_content": "<re-entry package>"})], False),
        (
            [clear({"reminder_content": "## Goal and scope\n\n- **Current progress**:\n- Open questions and risks"})],
            False,
        ),
        ([clear({"reminder_content": "Goal and scope\n- boats"})], True),
        ([clear({"reminder_content": 5})], False),
        ([clear({"reminder_content": None})], False),
        ([clear({"content": "Goal"})], False),
        ([clear("{not json")], False),
        ([clear("")], False),
        ([clear('["Goal"]')], False),
        ([clear("null")], False),
    ],
)
def test_exactly_one_clear_with_a_package_is_accepted(calls: list[ToolCall], accepted: bool) -> None:
    assert isinstance(judge_forced(calls), Keep if accepted else Discard)


@given(st.text())
def test_no_arguments_whatsoever_break_the_judge(arguments: str) -> None:
    assert (
        package_of(ToolCall("1", "clear_mind", arguments)) == package_of(ToolCall("2", "clear_mind", arguments)).strip()
    )


@given(st.text().filter(lambda text: not is_blank(text)))
def test_any_package_that_is_not_blank_is_accepted(package: str) -> None:
    assert judge_forced([clear({"reminder_content": package})]) == Keep()


def test_the_texts_offer_what_they_should() -> None:
    assert "clear_mind(" in CLEAR_OR_REMIND
    assert "add_reminder(" in CLEAR_OR_REMIND
    assert '"position": 0' in CLEAR_OR_REMIND
    assert "add_reminder" not in CLEAR_ONLY


def test_each_forced_attempt_differs_and_says_why_the_last_was_refused() -> None:
    first = forced_clear(0)
    second = forced_clear(
        1, RefusedClear("clear_mind with a blank package", 61_200, 64_000, "Goal and scope\n- the pool")
    )
    third = forced_clear(2, RefusedClear("text only, no clear_mind call", 61_200, 64_000, "Goal and scope\n- the pool"))
    assert first == CLEAR_ONLY
    assert "Attempt 2 of 3. Your last output was refused because: clear_mind with a blank package" in second
    assert "61,200 of 64,000 tokens" in second
    assert "the pool" not in second
    assert "text only, no clear_mind call" in third
    assert "- the pool" in third
    assert all("clear_mind(" in text and "add_reminder" not in text for text in (first, second, third))
