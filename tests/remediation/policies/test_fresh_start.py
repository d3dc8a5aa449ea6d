"""What a fresh start tells the agent: why it starts anew, and the task whole, however often it does."""

import json
from dataclasses import replace

from dominds.llm.messages import ToolCall
from remediation.config import ContextConfig
from remediation.context import Unit, UnitKind, Units, total_tokens
from remediation.decisions import AT_MILESTONE, BY_HAND
from remediation.loops import LOOP_REASON
from remediation.policies.fresh_start import COMPLETE_MILESTONE, POLICY
from remediation.policies.policy import RewriteTask
from remediation.strategies.outcome import LEDGER_PREFIX
from remediation.strategies.stand_ins import TASK_BEGAN, own_text, sources_of, stand_in, turns_of_summary
from tests.remediation.building import model, numbered, prose, system, tool, toolbox, user

FIRST = " ".join(f"requirement{place} holds" for place in range(60))  # 1,000 characters and more


def milestone(summary: str) -> Unit:
    unit = tool("Milestone recorded.", id="done", name=COMPLETE_MILESTONE)
    call = ToolCall(unit.messages[0].tool_calls[0].id, COMPLETE_MILESTONE, json.dumps({"summary": summary}))
    return replace(unit, messages=(replace(unit.messages[0], tool_calls=(call,)), *unit.messages[1:]))


def history(*last: Unit) -> Units:
    return numbered(system(), user(FIRST), model(prose("harbour", 400)), user("Go on."), *last)


def fresh(units: Units, reason: str) -> tuple[str, Units]:
    """The handover's text, and the view."""
    task = RewriteTask(units, 1_200, 600, 0, 0, 1_200, ContextConfig(), reason)
    assert POLICY.rewrite is not None
    view = POLICY.rewrite(task, toolbox()).units
    return next(unit.text for unit in view if unit.id.startswith("handover-")), view


def test_the_handover_names_its_reason() -> None:
    loop = fresh(history(), LOOP_REASON)[0]
    reached = fresh(history(milestone("the schema is done")), BY_HAND)[0]
    assert loop.startswith("Resuming after a loop: ")
    assert reached.startswith("Resuming after a milestone: the schema is done\n")
    assert fresh(history(), BY_HAND)[0].startswith("Resuming at a person's request.\n")
    assert fresh(history(), "more than 2 over-hits in an hour")[0].startswith("Resuming from overflow: ")


def test_the_handover_names_the_turns_that_it_stands_for() -> None:
    units = history(milestone("the schema is done"))
    gone = sources_of([unit for unit in units if unit.text == FIRST or "harbour" in unit.text])
    for reason in (LOOP_REASON, BY_HAND, "over"):
        handover, view = fresh(units, reason)
        assert turns_of_summary(handover) == (gone[0], gone[-1])
        later = numbered(*[user("x")] * 9, model(prose("quay", 500)), user("And then?"))[9:]
        again, _ = fresh((*view, *later), reason)
        assert turns_of_summary(again) == (gone[0], sources_of(later)[0])  # the first handover's among them


def test_the_task_goes_on_whole_through_repeated_fresh_starts() -> None:
    units = history()
    for number in range(3):
        handover, units = fresh(units, BY_HAND)
        assert handover.endswith(FIRST)
        units = (
            *units,
            *numbered(*[user("x")] * 9, model(prose(f"quay{number}", 500)), user(f"And then {number}?"))[9:],
        )
        units = tuple(
            replace(unit, id=f"{unit.id}-{place}") if unit.id.endswith("#10") else unit
            for place, unit in enumerate(units)
        )


def test_an_opening_is_no_part_of_what_is_handed_over_next() -> None:
    for reason in (LOOP_REASON, BY_HAND, "over"):
        handover = next(unit for unit in fresh(history(), reason)[1] if unit.id.startswith("handover-"))
        assert "Resuming" not in own_text(handover)


def test_a_later_request_is_not_called_the_first() -> None:
    first, second, *rest = numbered(user("Build the pier."), user(FIRST), model(prose("harbour", 400)), user("Go on."))
    ledger = stand_in(UnitKind.SUMMARY, "- The pier is 40 m long. [1 person]", [first], toolbox(), (), LEDGER_PREFIX)
    assert TASK_BEGAN in fresh((second, *rest), BY_HAND)[0]
    assert TASK_BEGAN not in fresh((second, ledger, *rest), BY_HAND)[0]


def test_the_first_request_is_told_without_its_code() -> None:
    asked = f"Mend this test.\n```\nassert {FIRST}\n```"
    units = numbered(system(), user(asked), model(prose("harbour", 400)), user("Go on."))
    assert fresh(units, BY_HAND)[0].endswith(f"{TASK_BEGAN}Mend this test.")


def test_a_fresh_start_that_is_asked_for_needs_no_large_gain() -> None:
    """It is asked for to start afresh, not for room."""
    newest = user(prose("quay", 700))
    units = numbered(system(), user(prose("harbour", 40)), model(prose("wharf", 100)), newest)
    for reason in (BY_HAND, AT_MILESTONE):
        view = fresh(units, reason)[1]
        assert 0.9 * total_tokens(units) < total_tokens(view) < total_tokens(units)
        assert view[-1].text == newest.text
