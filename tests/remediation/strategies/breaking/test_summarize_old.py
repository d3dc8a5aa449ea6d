"""The breaking chain's first strategy: what is summarised, what is not, and what happens to a bad summary."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from remediation.config import SummarizeOld
from remediation.context import UnitKind, total_tokens
from remediation.strategies.breaking.summarize_old import summarize_old
from remediation.strategies.stand_ins import HANDOVER_CLOSING, HANDOVER_OPENING
from tests.remediation.building import ids, model, numbered, prose, system, texts, tool, toolbox, user
from tests.remediation.strategies.laws import check_laws, context, rows, talk

OPTIONS = SummarizeOld()
SHORT = SummarizeOld(summary_length=40)
ALIKE: dict[str, Any] = {"alike": lambda a, b: 1.0}


def test_the_first_60_percent_become_one_summary() -> None:
    units = talk(18)  # 20 units: 12 are old, the system prompt among them
    after = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units
    assert len(after) == 1 + 1 + 8
    assert after[1].kind is UnitKind.SUMMARY
    assert after[2:] == units[12:]


def test_in_plain_talk_a_rule_leaves_the_newest_share() -> None:
    units = talk(18)  # 20 units: the newest four stay
    after = summarize_old(units, SHORT, toolbox(), 1, recent_share=0.2).units
    assert after[1].kind is UnitKind.SUMMARY
    assert after[2:] == units[16:]


def test_a_models_summary_stands_for_what_is_old_alone() -> None:
    units = talk(18)
    box = toolbox(summarise=lambda text, tokens: f"{units[3].text[:80]}.")
    after = summarize_old(units, SHORT, box, 1, recent_share=0.2).units
    assert after[2:] == units[12:]


def test_where_tools_were_called_what_is_not_old_stays() -> None:
    units = (*talk(18)[:17], tool(prose("result", 40), id="called"), *talk(18)[18:])
    after = summarize_old(units, SHORT, toolbox(), 1, recent_share=0.2).units
    assert after[2:] == units[12:]


@pytest.mark.parametrize(("threshold", "left"), [(0.0, 20), (0.5, 12), (0.6, 10), (1.0, 3)])
def test_the_threshold_is_a_share_of_the_units(threshold: float, left: int) -> None:
    # 0.5: of 20 units 10 are old, the system prompt among them; 9 become 1. 1.0: system, summary, newest question.
    after = summarize_old(talk(18), SummarizeOld(threshold, 40), toolbox(**ALIKE), 1).units
    assert len(after) == left


def test_the_summary_stands_where_the_text_stood() -> None:
    units = numbered(
        system(), user(prose("keep"), priority=1), *(model(prose(f"m{i}", 60)) for i in range(8)), user("now")
    )
    after = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units
    assert [u.kind for u in after[:3]] == [UnitKind.MESSAGE, UnitKind.MESSAGE, UnitKind.SUMMARY]


def test_the_summary_says_what_it_is_and_remembers_its_sources() -> None:
    units = talk(18)
    summary = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units[1]
    assert summary.text.startswith("[Summary of turns 2-12]\n")
    assert summary.source == tuple(range(2, 13))


@pytest.mark.parametrize("mark", [{"kind": UnitKind.PLAN_REF}, {"priority": 1}, {"pinned": True}])
def test_plan_references_priority_one_and_pinned_units_stay_verbatim(mark: dict[str, Any]) -> None:
    units = tuple(replace(u, **mark) if i in (3, 5) else u for i, u in enumerate(talk(18)))
    after = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units
    assert units[3] in after
    assert units[5] in after


def test_priority_three_goes_before_priority_two() -> None:
    units = tuple(replace(u, priority=2 + i % 2) for i, u in enumerate(talk(18)))
    target = total_tokens(units) - 60  # the old units of priority 3 free more than that
    after = summarize_old(units, SHORT, toolbox(**ALIKE), target).units
    assert {u.priority for u in units if u not in after} == {3}


def test_priority_two_goes_when_priority_three_is_not_enough() -> None:
    units = tuple(replace(u, priority=2 + i % 2) for i, u in enumerate(talk(18)))
    after = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units
    assert {u.priority for u in units if u not in after} == {2, 3}


def test_a_summary_is_as_important_as_its_most_important_unit() -> None:
    units = tuple(replace(u, priority=2 if i == 3 else 3) for i, u in enumerate(talk(18)))
    assert summarize_old(units, SHORT, toolbox(**ALIKE), 1).units[1].priority == 2


def test_a_second_pass_collides_with_no_id() -> None:
    units = talk(18)
    once = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units
    later = numbered(*(model(prose(f"later{i}", 40), id=f"n{i}") for i in range(12)))
    twice = summarize_old((*once, *later), SHORT, toolbox(**ALIKE), 1).units
    assert len(set(ids(twice))) == len(twice)
    assert once[1].id not in ids(twice)


def test_summaries_merge_and_do_not_nest() -> None:
    box = toolbox(**ALIKE)
    once = summarize_old(talk(18), SHORT, box, 1).units
    twice = summarize_old(
        (*once, *numbered(*(model(prose(f"later{i}", 40), id=f"n{i}") for i in range(12)))), SHORT, box, 1
    )
    summaries = [u.text for u in twice.units if u.kind is UnitKind.SUMMARY]
    assert len(summaries) == 1
    assert summaries[0].count("[Summary of ") == summaries[0].count("turns 1-19") == 1


def test_a_handover_gives_its_content_without_its_frame() -> None:
    handover = user(f"{HANDOVER_OPENING}{prose('old', 60)}{HANDOVER_CLOSING}dig", id="h", kind=UnitKind.SUMMARY)
    units = numbered(system(), handover, *(model(prose(f"m{i}", 40)) for i in range(6)), user("now"))
    after = summarize_old(units, SHORT, toolbox(**ALIKE), 1).units
    assert not any(HANDOVER_OPENING in text for text in texts(after))


def test_nothing_old_means_nothing_done() -> None:
    units = numbered(system(), user("now"))
    outcome = summarize_old(units, OPTIONS, toolbox(), 1)
    assert outcome.units is units
    assert "nothing" in outcome.note


def test_a_summary_that_saves_nothing_is_not_made() -> None:
    units = talk(6, length=2)
    outcome = summarize_old(units, OPTIONS, toolbox(**ALIKE), 1)
    assert outcome.units is units


def test_a_lone_summary_is_not_summarised_again_and_again() -> None:
    box = toolbox(**ALIKE)
    units = summarize_old(talk(18), SHORT, box, 1).units
    for _ in range(5):
        units = summarize_old(units, SHORT, box, 1).units
    assert summarize_old(units, SHORT, box, 1).units == units


def test_a_summary_about_something_else_is_not_used() -> None:
    outcome = summarize_old(talk(18), SHORT, toolbox(summarise=lambda t, n: "Bananas are yellow."), 1)
    assert "says nothing of what it stands for" in outcome.note
    assert "Bananas" not in outcome.units[1].text
    assert "subject10" in outcome.units[1].text  # of the newest old unit


def test_a_summary_that_looks_unlike_is_kept_with_a_warning() -> None:
    summarise: dict[str, Any] = {"summarise": lambda t, n: "The subject0 and subject1 were spoken of."}
    unlike = summarize_old(talk(18), SHORT, toolbox(**summarise, alike=lambda a, b: 0.39), 1)
    alike = summarize_old(talk(18), SHORT, toolbox(**summarise, alike=lambda a, b: 0.4), 1)
    assert unlike.units == alike.units
    assert "unlike" in unlike.note
    assert "unlike" not in alike.note


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "   ",
        "<think>let me see</think>",
        '{"name": "shell", "arguments": {}}',
        "I'm sorry, but I can't help with that.",
        "Error: 429 Too Many Requests",
        "subject0 was " + prose("subject1", 900),
    ],
)
def test_a_faulty_summary_is_replaced_by_rule(bad: str) -> None:
    outcome = summarize_old(talk(18), SHORT, toolbox(summarise=lambda t, n: bad, **ALIKE), 1)
    assert "chosen by rule" in outcome.note
    assert ("because" in outcome.note) == bool(bad.strip())
    assert outcome.units[1].kind is UnitKind.SUMMARY
    assert not bad.strip() or bad not in outcome.units[1].text


def test_secrets_do_not_enter_the_summary() -> None:
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    units = numbered(
        system(), tool(f"api_key={key} {prose('x', 60)}", id="t"), *(model(prose(f"m{i}", 60)) for i in range(8))
    )
    seen: list[str] = []

    def summarise(text: str, tokens: int) -> str:
        seen.append(text)
        return f"The key is {key}."

    box = toolbox(summarise=summarise, **ALIKE)
    after = summarize_old(units, SHORT, box, 1).units
    assert key not in "\n".join([*texts(after), *seen])


def test_tool_exchanges_go_whole() -> None:
    results = (tool(prose("out", 40), id=f"t{i}") for i in range(9))
    units = numbered(system(), model(prose("note", 40)), *results, user("now"))
    outcome = summarize_old(units, SHORT, toolbox(**ALIKE), 1)
    check_laws(units, outcome)
    assert len(outcome.units) == 1 + 1 + 12 - 7


@given(rows)
def test_the_laws_hold_for_any_context(made: list[Any]) -> None:
    units = context(made)
    check_laws(units, summarize_old(units, SHORT, toolbox(), 50))


@given(rows)
def test_it_is_deterministic(made: list[Any]) -> None:
    units = context(made)
    assert summarize_old(units, SHORT, toolbox(), 50) == summarize_old(units, SHORT, toolbox(), 50)
