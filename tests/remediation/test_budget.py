"""One owner of the window: where a rewrite is due, what it aims at, and what is left for recalled text."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.levels import Level
from remediation.budget import Budget, LastRewrite, answer_room, package_room
from remediation.context import Context
from remediation.decisions import Proceed
from remediation.policies import decide
from remediation.policies.policy import obstacle
from remediation.policies.registry import policy_named

# LM Studio's default window: 80 % are 3,276, less 512 for the answer 2,764; half less the answer 1,536.
STUDIO = Budget(
    limit=4_096,
    window=4_096,
    frame=800,
    view=1_000,
    stays=50,
    answer=512,
    counts_answer=True,
    optimal=100_000,
    critical=3_686,
)

budgets = st.builds(
    Budget,
    limit=st.integers(1_000, 200_000),
    window=st.sampled_from([1_000, 200_000]),
    frame=st.integers(0, 20_000),
    view=st.integers(0, 220_000),
    stays=st.integers(0, 5_000),
    answer=st.integers(256, 25_000),
    counts_answer=st.booleans(),
    optimal=st.integers(500, 200_000),
    critical=st.integers(500, 200_000),
)


@pytest.mark.parametrize(
    ("output_length", "window", "tokens"),
    [
        (None, None, 1_024),
        (None, 32_768, 1_024),
        (None, 4_096, 512),  # an eighth
        (None, 1_000, 256),  # at least
        (8_192, 32_768, 4_096),
        (2_000, 200_000, 2_000),
    ],
)
def test_the_answer_has_an_eighth_of_the_window_at_most(
    output_length: int | None, window: int | None, tokens: int
) -> None:
    assert answer_room(output_length, window) == tokens


@pytest.mark.parametrize(("window", "tokens"), [(2_048, 384), (8_192, 512), (128_000, 8_000)])
def test_a_package_has_a_sixteenth_at_least(window: int, tokens: int) -> None:
    assert package_room(window) == tokens


def test_a_default_window_is_rewritten_from_two_thirds_to_three_eighths() -> None:
    assert STUDIO.trigger_prompt == 2_764
    assert not replace(STUDIO, view=1_964).is_over_trigger
    assert replace(STUDIO, view=1_965).is_over_trigger
    assert STUDIO.aim - STUDIO.answer == 1_536


@pytest.mark.parametrize(
    ("change", "room"),
    [
        ({}, 964),  # what is free below the trigger
        ({"view": 200}, 1_433),  # its share
        ({"view": 1_964}, 0),
        ({"view": 9_999}, 0),
        ({"view": 200, "freed": 1_500}, 500),  # right after a rewrite: a third of what was freed
        ({"freed": 1_500}, 180),  # and under compaction no more than 60 % of what the request took before it
        ({"freed": 1_500, "counts_answer": False}, 500),
        ({"freed": 2_400, "counts_answer": False}, 657),  # otherwise 60 % of the limit
        ({"critical": 2_000}, 100),  # 95 % of what would turn red
        ({"critical": 1_700}, 964),  # it is red anyway
        ({"limit": None, "window": None}, 1_024),
    ],
)
def test_recall_takes_what_is_left(change: dict[str, Any], room: int) -> None:
    assert replace(STUDIO, **change).recall_room() == room


@given(budgets, st.integers(0, 50_000))
def test_trigger_and_aim_move_by_nothing_but_the_limit(budget: Budget, freed: int) -> None:
    other = replace(budget, freed=freed, view=0, stays=0, optimal=1, critical=1)
    assert (budget.trigger, budget.aim, budget.trigger_prompt) == (other.trigger, other.aim, other.trigger_prompt)


@given(budgets, st.integers(0, 5_000), st.integers(0, 50_000))
def test_a_longer_view_never_leaves_more_room_for_recall(budget: Budget, more: int, freed: int) -> None:
    longer = replace(budget, view=budget.view + more)
    if any(t is not None and budget.prompt <= t < longer.prompt for t in (budget.optimal, budget.critical)):
        return  # a threshold that is passed anyway binds recall no more
    assert longer.recall_room() <= budget.recall_room()
    assert replace(budget, freed=freed).recall_room() <= budget.recall_room()


@given(budgets)
def test_recall_lifts_no_request_over_trigger_or_threshold(budget: Budget) -> None:
    room = budget.recall_room()
    if room:
        assert budget.limit is not None and budget.window is not None
        is_window = budget.limit >= budget.window
        assert budget.taken + room <= (budget.trigger if is_window else budget.limit)
        for threshold in (budget.optimal, budget.critical):
            assert threshold is None or budget.prompt > threshold or budget.prompt + room <= threshold


@pytest.mark.parametrize(
    ("change", "pays"),
    [
        ({"view": 2_000}, True),
        ({"view": 2_000, "stays": 1_145}, True),  # 800 + 512 + 1,145 = 2,457: a quarter below 3,276
        ({"view": 2_000, "stays": 1_146}, False),
        ({"view": 50}, False),  # nothing can go
        ({"view": 2_900, "stays": 1_800}, True),  # red when it is reported; what stays is not
        ({"view": 2_900, "stays": 2_500}, False),  # the same, by less than a tenth
        ({"view": 3_300, "stays": 3_200}, True),  # it does not fit: any gain counts
        ({"frame": 2_600, "view": 150}, False),  # instructions and tools alone are too long
    ],
)
def test_a_rewrite_is_made_only_where_it_can_pay(change: dict[str, Any], pays: bool) -> None:
    assert replace(STUDIO, **change).can_pay is pays


@pytest.mark.parametrize(
    ("last", "view", "wanted"),
    [
        (None, 2_000, True),
        (LastRewrite(freed=1_500, after=1_600, messages_since=4), 2_000, True),  # 1,200 are new, four fifths of it
        (LastRewrite(freed=1_502, after=1_600, messages_since=4), 2_000, False),
        (LastRewrite(freed=1_502, after=1_600, messages_since=5), 2_000, True),
        (LastRewrite(freed=1_502, after=1_600, messages_since=0), 2_900, True),  # critical otherwise
        (LastRewrite(freed=0, after=2_000, messages_since=3), 2_000, False),  # the last one was rejected
    ],
)
def test_no_second_rewrite_comes_before_much_is_new(last: LastRewrite | None, view: int, wanted: bool) -> None:
    context = Context(Level.HEALTHY, replace(STUDIO, view=view), last_rewrite=last)
    assert context.wants_rewrite is wanted


def test_a_rewrite_comes_before_an_answer_that_would_be_cut() -> None:
    """The stream is cut at 3,686 of 4,096 tokens; the answer is expected to be a tenth longer than the last ones."""
    last = LastRewrite(freed=1_502, after=1_600, messages_since=1)
    budget = replace(STUDIO, view=2_000, answered=806)  # a prompt of 2,800
    context = Context(Level.HEALTHY, budget, last_rewrite=last)
    assert budget.prompt == 2_800 and budget.room_for_another == 0
    assert not context.wants_rewrite
    assert replace(context, budget=replace(budget, answered=807)).wants_rewrite
    assert replace(budget, counts_answer=False).room_for_another is None, "no stream is cut"


def test_recalled_text_cuts_no_answer() -> None:
    budget = replace(STUDIO, view=1_000)
    assert budget.recall_room() > 700
    long = replace(budget, answered=1_300)
    assert long.recall_room() == 3_686 - 1_800 - 1_430 == long.room_for_another
    assert replace(budget, answered=2_000).recall_room() == 0


def test_a_critical_report_is_answered_by_a_rewrite_where_that_helps() -> None:
    red = Context(Level.CRITICAL, replace(STUDIO, view=1_500))
    assert red.wants_rewrite
    assert not replace(red, budget=replace(STUDIO, view=500)).wants_rewrite, "the estimate says that little can go"
    assert not replace(red, changed=False).wants_rewrite


NO_ROOM = replace(STUDIO, frame=2_300, view=500, stays=100)  # 2,300 + 100 + 512 = 2,912: more than 2,457


@pytest.mark.parametrize("name", ["autocompaction", "breaking", "retention", "summarize"])
def test_no_policy_rewrites_what_no_rewrite_could_mend(name: str) -> None:
    context = Context(Level.HEALTHY, replace(NO_ROOM, view=900, stays=500))
    assert context.is_obstructed
    assert decide(policy_named(name), context) == Proceed()
    assert not replace(context, requested="prune").is_obstructed, "a person's wish is tried"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "Instructions, tools and reminders take est. 2,300 of 4,096 tokens"),
        ({"frame": 800, "stays": 1_500}, "The newest message and what has to stay take est. 1,500 of 4,096 tokens"),
    ],
)
def test_the_largest_part_is_named_as_the_obstacle(change: dict[str, Any], says: str) -> None:
    words = obstacle(replace(NO_ROOM, **change))
    assert words.startswith(says)
    assert "512 are kept for the answer" in words and words.endswith("choose a model with a larger window.")
