"""The breaking chain's fourth strategy: what goes, and what stands in its place."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from remediation.config import DiscardLowRel
from remediation.context import UnitKind, Units, total_tokens
from remediation.strategies.breaking.discard_low_relevance import discard_low_rel
from tests.remediation.building import ids, model, numbered, prose, rated, system, texts, tool, toolbox, user
from tests.remediation.strategies.laws import check_laws, context, rows, talk

OPTIONS = DiscardLowRel()
LINKED = DiscardLowRel(placeholder_detail="linked")
ALIKE: dict[str, Any] = {"alike": lambda a, b: 1.0}


def scored(*scores: float, **fields: Any) -> Units:
    texts = (model(f"{score} {prose(f'm{i}', 20)}", **fields) for i, score in enumerate(scores))
    return numbered(system(), *texts, user("now"))


def placeholders(units: Units) -> list[int]:
    return [i for i, u in enumerate(units) if u.kind is UnitKind.PLACEHOLDER]


@pytest.mark.parametrize(("share", "gone"), [(0.0, 0), (0.1, 1), (0.3, 3), (0.5, 5), (1.0, 10)])
def test_at_most_the_bottom_share_goes(share: float, gone: int) -> None:
    units = scored(*(i / 10 for i in range(10)))
    after = discard_low_rel(units, DiscardLowRel(share), toolbox(relevant=rated, **ALIKE), 1).units
    assert len(set(ids(units)) - set(ids(after))) == gone


def test_the_least_relevant_go() -> None:
    units = scored(0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.5, 0.4, 0.95)
    after = discard_low_rel(units, OPTIONS, toolbox(relevant=rated, **ALIKE), 1).units
    assert {units[2].id, units[4].id, units[6].id} == set(ids(units)) - set(ids(after))


def test_it_stops_at_the_target() -> None:
    units = scored(*(i / 10 for i in range(10)))
    after = discard_low_rel(units, DiscardLowRel(1.0), toolbox(relevant=rated, **ALIKE), total_tokens(units) - 30).units
    assert len(set(ids(units)) - set(ids(after))) == 2


def test_placeholders_stand_where_the_text_stood() -> None:
    units = scored(0.9, 0.1, 0.1, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9)
    after = discard_low_rel(units, OPTIONS, toolbox(relevant=rated, **ALIKE), 1).units
    assert placeholders(after) == [2, 5]  # one for each run
    assert after[1] == units[1]
    assert after[2].source == (3, 4)


@pytest.mark.parametrize(
    ("units", "options", "text"),
    [
        (scored(0.1, 0.9, 0.9), OPTIONS, "[Omitted low-relevance prior context]"),
        (scored(0.1, 0.9, 0.9), LINKED, "[Omitted – see archive, turns 2-2]"),
        (scored(0.1, 0.1, *(0.9,) * 5), LINKED, "[Omitted – see archive, turns 2-3]"),
        (tuple(replace(unit, source=()) for unit in scored(0.1, 0.9, 0.9)), LINKED, "[Omitted – see archive]"),
    ],
    ids=["brief", "one turn", "two turns", "without turns"],
)
def test_a_placeholder_says_what_was_omitted(units: Units, options: DiscardLowRel, text: str) -> None:
    assert discard_low_rel(units, options, toolbox(relevant=rated, **ALIKE), 1).units[1].text == text


def test_a_placeholder_never_costs_more_than_it_saves() -> None:
    units = numbered(system(), model("0.1"), *(model(f"0.9 {prose('x')}") for _ in range(9)), user("now"))
    outcome = discard_low_rel(units, DiscardLowRel(0.1), toolbox(relevant=rated, **ALIKE), 1)
    assert outcome.units == units
    assert outcome.note == "nothing to discard"


def test_the_second_pass_merges_neighbouring_placeholders() -> None:
    box = toolbox(relevant=rated, **ALIKE)
    units = scored(0.1, 0.2, 0.3, 0.9, 0.9, 0.9)
    once = discard_low_rel(units, DiscardLowRel(0.2), box, 1).units
    twice = discard_low_rel(once, DiscardLowRel(0.2), box, 1).units
    assert placeholders(once) == placeholders(twice) == [1]
    assert twice[1].source == (2, 3)
    assert once[1].id != twice[1].id


def test_placeholders_and_summaries_are_no_candidates() -> None:
    summary = user(prose("s", 40), kind=UnitKind.SUMMARY, id="s")
    units = numbered(system(), summary, *scored(0.1, 0.9)[1:])
    assert units[1] in discard_low_rel(units, DiscardLowRel(1.0), toolbox(relevant=rated, **ALIKE), 1).units


def test_priority_three_goes_before_priority_two_however_relevant() -> None:
    twos, threes = scored(0.1, 0.1, 0.1, priority=2)[1:-1], scored(0.8, 0.8, 0.8)[1:]
    units = numbered(system(), *twos, *threes)
    after = discard_low_rel(units, DiscardLowRel(0.5), toolbox(relevant=rated, **ALIKE), 1).units
    assert all(u in after for u in units[1:4])
    assert not any(u in after for u in units[4:7])


def test_priority_two_goes_when_no_three_is_left() -> None:
    units = scored(0.1, 0.2, 0.3, priority=2)
    assert placeholders(discard_low_rel(units, OPTIONS, toolbox(relevant=rated, **ALIKE), 1).units) == [1]


@pytest.mark.parametrize("mark", [{"priority": 1}, {"pinned": True}])
def test_priority_one_and_pinned_units_survive(mark: dict[str, Any]) -> None:
    units = scored(0.0, 0.0, 0.0, **mark)
    assert discard_low_rel(units, DiscardLowRel(1.0), toolbox(relevant=rated, **ALIKE), 1).units == units


def test_plan_references_go_last_within_their_priority() -> None:
    units = tuple(replace(u, kind=UnitKind.PLAN_REF) if i == 1 else u for i, u in enumerate(scored(0.0, 0.5, 0.5, 0.5)))
    after = discard_low_rel(units, DiscardLowRel(0.5), toolbox(relevant=rated, **ALIKE), 1).units
    assert units[1] in after


@pytest.mark.parametrize(("likeness", "undone"), [(0.59, True), (0.6, False)])
def test_what_breaks_the_meaning_is_undone_and_summarised(likeness: float, undone: bool) -> None:
    asked: list[float] = []

    def alike(a: str, b: str) -> float:
        asked.append(likeness)
        return likeness if len(asked) == 1 else 1.0  # then of the summary

    units = numbered(system(), *(model(f"0.{i} {prose(f'm{i}', 80)}") for i in range(9)), user("now"))
    outcome = discard_low_rel(units, OPTIONS, toolbox(relevant=rated, alike=alike), 1)
    assert ("undone" in outcome.note) is undone
    assert bool(placeholders(outcome.units)) is not undone
    assert any(u.kind is UnitKind.SUMMARY for u in outcome.units) is undone
    assert total_tokens(outcome.units) < total_tokens(units)


def test_the_summary_instead_covers_the_same_units() -> None:
    units = numbered(system(), *(model(f"0.{i} {prose(f'm{i}', 80)}") for i in range(9)), user("now"))
    outcome = discard_low_rel(units, OPTIONS, toolbox(relevant=rated, alike=lambda a, b: 0.5), 1)
    summary = next(u for u in outcome.units if u.kind is UnitKind.SUMMARY)
    assert summary.source == (2, 3)
    assert units[3] in outcome.units


def test_nothing_goes_when_the_target_is_met() -> None:
    units = talk(10)
    assert discard_low_rel(units, OPTIONS, toolbox(), 10_000).units == units


def test_an_empty_context_is_left_alone() -> None:
    assert discard_low_rel((), OPTIONS, toolbox(), 1).units == ()


def test_a_lone_candidate_may_go() -> None:
    after = discard_low_rel(scored(0.1), OPTIONS, toolbox(relevant=rated, **ALIKE), 1).units
    assert placeholders(after) == [1]


def test_tool_exchanges_go_whole() -> None:
    units = numbered(system(), *(tool(prose("out", 20), id=f"t{i}") for i in range(10)), user("now"))
    check_laws(units, discard_low_rel(units, DiscardLowRel(0.5), toolbox(**ALIKE), 1))


def test_the_newest_unit_and_question_stay() -> None:
    units = numbered(system(), user(prose("task", 40)), *(tool(prose("out", 40), id=f"t{i}") for i in range(4)))
    after = discard_low_rel(units, DiscardLowRel(1.0), toolbox(**ALIKE), 1).units
    assert texts(after)[1] == units[1].text
    assert after[-1] == units[-1]


@given(rows)
def test_the_laws_hold_for_any_context(made: list[Any]) -> None:
    units = context(made)
    check_laws(units, discard_low_rel(units, DiscardLowRel(0.5), toolbox(), 50))
