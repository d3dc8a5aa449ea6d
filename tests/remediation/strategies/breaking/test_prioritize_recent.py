"""The breaking chain's second strategy: relevance, the newest share, priorities."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from remediation.config import PrioritizeRecent
from remediation.context import UnitKind, total_tokens
from remediation.strategies.breaking.prioritize_recent import prioritize_recent
from remediation.strategies.outcome import task_of
from tests.remediation.building import model, numbered, prose, rated, system, texts, tool, toolbox, user
from tests.remediation.strategies.laws import check_laws, context, gone_priorities, rows, talk

OPTIONS = PrioritizeRecent()


def none(text: str) -> float:
    return 0.0


def test_low_relevance_goes_until_the_target_is_reached() -> None:
    units = talk(18)
    after = prioritize_recent(units, OPTIONS, toolbox(relevant=none), 400).units
    assert 400 - 31 < total_tokens(after) <= 400


def test_units_at_the_threshold_are_kept() -> None:
    units = numbered(
        system(), *(model(f"{score} {prose('x', 20)}") for score in (0.49, 0.5, 0.9, 0.1)), user("a"), user("b")
    )
    after = prioritize_recent(units, OPTIONS, toolbox(relevant=rated), 1).units
    assert [text.split()[0] for text in texts(after)[1:-2]] == ["0.5", "0.9"]


def test_the_least_relevant_go_first() -> None:
    units = numbered(system(), *(model(f"{s} {prose('x', 20)}") for s in (0.3, 0.1, 0.2, 0.4)), user("a"), user("b"))
    after = prioritize_recent(units, OPTIONS, toolbox(relevant=rated), total_tokens(units) - 30).units
    assert [text.split()[0] for text in texts(after)[1:-2]] == ["0.3", "0.4"]


@pytest.mark.parametrize(("bias", "kept"), [(0.0, 2), (0.2, 5), (0.5, 11), (1.0, 21)])
def test_the_newest_share_is_kept_whatever_its_relevance(bias: float, kept: int) -> None:
    units = talk(19)  # 21 units
    after = prioritize_recent(units, PrioritizeRecent(recent_bias=bias), toolbox(relevant=none), 1).units
    assert len(after) == max(kept, 2) + (0.0 < bias < 1.0)  # beside the system prompt


def test_priority_three_goes_before_priority_two_however_relevant() -> None:
    units = numbered(
        system(),
        *(model(f"0.1 {prose('two', 20)}", priority=2) for _ in range(4)),
        *(model(f"0.4 {prose('three', 20)}") for _ in range(4)),
        user("a"),
        user("b"),
        user("c"),
    )
    box = toolbox(relevant=rated)
    some = prioritize_recent(units, OPTIONS, box, total_tokens(units) - 80).units
    assert gone_priorities(units, some) == {3}
    more = prioritize_recent(units, OPTIONS, box, 1).units
    assert gone_priorities(units, more) == {2, 3}


def test_priority_one_survives_by_rule() -> None:
    units = tuple(replace(u, priority=1) for u in talk(18))
    assert prioritize_recent(units, OPTIONS, toolbox(relevant=none), 1).units == units


def test_pinned_units_survive() -> None:
    units = tuple(replace(u, pinned=True) if i == 3 else u for i, u in enumerate(talk(18)))
    assert units[3] in prioritize_recent(units, OPTIONS, toolbox(relevant=none), 1).units


@pytest.mark.parametrize(
    ("priority", "score", "stays"), [(2, 0.4, True), (2, 0.39, False), (3, 0.49, False), (3, 0.5, True)]
)
def test_the_boost_lifts_priority_two_by_half(priority: int, score: float, stays: bool) -> None:
    # 0.4 * (1 + 1.5) / 2 = 0.5, just relevant
    units = numbered(system(), model(f"{score} {prose('x', 20)}", priority=priority), user("a"), user("b"), user("c"))
    after = prioritize_recent(units, OPTIONS, toolbox(relevant=rated), 1).units
    assert (units[1] in after) is stays


def test_plan_references_go_last_within_their_priority() -> None:
    units = numbered(
        system(),
        model(prose("plan", 20), kind=UnitKind.PLAN_REF),
        *(model(prose(f"m{i}", 20)) for i in range(6)),
        user("a"),
        user("b"),
    )
    after = prioritize_recent(units, OPTIONS, toolbox(relevant=none), total_tokens(units) - 100).units
    assert units[1] in after


def test_summaries_and_placeholders_are_not_judged() -> None:
    stand_ins = [user(prose("s", 20), kind=kind, id=kind.value) for kind in (UnitKind.SUMMARY, UnitKind.PLACEHOLDER)]
    units = numbered(system(), *stand_ins, *talk(8)[1:])
    after = prioritize_recent(units, OPTIONS, toolbox(relevant=none), 1).units
    assert units[1] in after
    assert units[2] in after


def test_everything_relevant_asks_for_a_fresh_start() -> None:
    outcome = prioritize_recent(talk(18), OPTIONS, toolbox(relevant=lambda text: 0.9), 1)
    assert outcome.fresh_start
    assert outcome.units == talk(18)


def test_two_relevant_units_prove_nothing() -> None:
    units = numbered(system(), model("x"), model("y"), user("a"))
    outcome = prioritize_recent(units, OPTIONS, toolbox(relevant=lambda text: 0.9), 1)
    assert not outcome.fresh_start


def test_one_irrelevant_unit_is_enough_to_go_on() -> None:
    units = numbered(system(), model(f"0.1 {prose('x')}"), *(model(f"0.9 {prose('y')}") for _ in range(9)), user("a"))
    outcome = prioritize_recent(units, OPTIONS, toolbox(relevant=rated), 1)
    assert not outcome.fresh_start
    assert len(outcome.units) == len(units) - 1


def test_nothing_goes_when_the_target_is_met() -> None:
    units = talk(18)
    assert prioritize_recent(units, OPTIONS, toolbox(relevant=none), 10_000).units == units


def test_an_empty_context_is_left_alone() -> None:
    outcome = prioritize_recent((), OPTIONS, toolbox(relevant=none), 1)
    assert outcome.units == ()
    assert not outcome.fresh_start


def test_relevance_is_asked_once_for_all() -> None:
    calls: list[int] = []

    def relevance(texts: Sequence[str], query: str) -> list[float]:
        calls.append(len(texts))
        return [0.0] * len(texts)

    box = replace(toolbox(), relevance=relevance)
    prioritize_recent(talk(18), OPTIONS, box, 1)
    assert len(calls) == 1


def test_the_query_is_the_newest_question_and_the_first_task() -> None:
    units = numbered(system(), user("Build a boat"), model("ok"), user("Paint it blue"), model("sure"))
    assert task_of(units) == "Paint it blue\nBuild a boat"
    assert task_of(units[:2]) == "Build a boat"
    assert task_of(()) == ""


def test_lexical_relevance_keeps_what_the_question_is_about() -> None:
    units = numbered(
        system(),
        *(model("The harbour crane lifts containers from the harbour ship.") for _ in range(3)),
        *(model("My grandmother baked bread with raisins on Sundays.") for _ in range(3)),
        user("Why does the harbour crane lift containers from the ship?"),
    )
    after = prioritize_recent(units, PrioritizeRecent(0.3, 0.0), toolbox(), 50).units
    assert sum("crane" in text for text in texts(after)) == 4
    assert not any("raisins" in text for text in texts(after))


def test_tool_exchanges_go_whole() -> None:
    units = numbered(system(), *(tool(prose("out", 20), id=f"t{i}") for i in range(10)), user("now"))
    check_laws(units, prioritize_recent(units, OPTIONS, toolbox(relevant=none), 60))


@given(rows)
def test_the_laws_hold_for_any_context(made: list[Any]) -> None:
    units = context(made)
    check_laws(units, prioritize_recent(units, OPTIONS, toolbox(), 50))


@given(rows)
def test_no_priority_two_goes_while_an_eligible_three_stands(made: list[Any]) -> None:
    units = context(made)
    for target in (50, 200):
        after = prioritize_recent(units, PrioritizeRecent(recent_bias=0.0), toolbox(relevant=none), target).units
        if 2 in gone_priorities(units, after):
            newest = units[-1]
            left = [u for u in after if u.priority == 3 and not u.pinned and u is not newest]
            assert len(left) <= 1  # the newest user message
