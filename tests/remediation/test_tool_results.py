"""Tool loops in windows of every size, by the rules alone: no request is longer than its model's window."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dominds.llm.messages import Message, Role, ToolCall
from dominds.llm.usage import Usage
from health.levels import Level, Thresholds, judge
from remediation.budget import Budget, answer_room
from remediation.config import ContextConfig
from remediation.context import Context, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.decisions import Fail, ForceClear, PutAside, Reject, Rewrite
from remediation.policies import decide, on_tool_result
from remediation.policies.laws import broken_law
from remediation.policies.newest_whole import with_newest_whole
from remediation.policies.policy import CountingFacts, RewriteTask
from remediation.policies.registry import choices, policy_named
from tests.remediation.building import count, model, numbered, prose, system, toolbox, user

FRAME = 500
NOTE = 25  # tokens that say where a result is that was put aside

windows = st.integers(2_048, 8_192) | st.sampled_from([32_768, 65_536])
turns = st.lists(  # of the calls of each answer: what their results take of the window, in percent
    st.lists(st.integers(1, 130), min_size=1, max_size=4), min_size=1, max_size=6
)


def budget_of(name: str, window: int, units: Units) -> Budget:
    policy, thresholds = policy_named(name), Thresholds(window)
    facts = CountingFacts(window, "a-model", "", None, "", 2, ContextConfig)
    return Budget(
        limit=policy.limit(facts),
        window=window,
        frame=FRAME,
        view=total_tokens(units),
        stays=sum(unit.est_tokens for unit in units if unit.pinned or unit is units[-1]),
        answer=answer_room(None, window),
        counts_answer=policy.reserves_answer,
        optimal=thresholds.effective_optimal_max,
        critical=thresholds.effective_critical_max,
    )


def rewritten(name: str, units: Units, decision: Rewrite, budget: Budget) -> Units:
    limit, rewrite = budget.limit or 0, policy_named(name).rewrite
    assert rewrite is not None
    task = RewriteTask(
        units=units,
        limit=max(200, budget.units_room(limit)),
        target=max(200, budget.units_room(min(limit, decision.target_tokens))),
        fixed=budget.beside,
        standing=budget.stays,
        request_limit=limit,
        config=ContextConfig(),
    )
    result = with_newest_whole(task, toolbox(), rewrite)
    return units if result.failure or broken_law(units, result.units) else result.units


def sent(name: str, window: int, units: Units, level: Level) -> Units:
    """Return the view that is sent at last, none where nothing is; ``units`` are new."""
    changed = True
    for _ in range(4):
        budget = budget_of(name, window, units)
        match decide(policy_named(name), Context(level, budget, changed=changed)):
            case Rewrite() as decision:
                units, changed = rewritten(name, units, decision, budget), False
            case ForceClear() | Fail():
                return ()
            case _:
                break
    assert budget_of(name, window, units).prompt <= window
    return units


def called(name: str, window: int, units: Units, results: list[int], number: int) -> Unit:
    """Return an answer's calls with their results, each judged beside those that came before."""
    calls = tuple(ToolCall(f"c{number}-{at}", "run_check", "{}") for at, _ in enumerate(results))
    unit = Unit(f"t{number}", UnitKind.LOG, UnitRole.TOOL, (Message(Role.ASSISTANT, tool_calls=calls),), (1,))
    for call, percent in zip(calls, results, strict=True):
        unit = replace(unit, est_tokens=count(unit.messages))
        context = Context(Level.HEALTHY, budget_of(name, window, (*units, unit)))
        tokens = window * percent // 100
        match on_tool_result(policy_named(name), context, tokens + 1):
            case Reject():
                tokens = NOTE
            case PutAside(room):
                assert room < tokens + 1
                tokens = min(room, 4_000) // 4 + NOTE
        text = prose(f"r{call.id}", tokens)
        unit = replace(unit, messages=(*unit.messages, Message(Role.TOOL, text, tool_call_id=call.id)))
    return replace(unit, est_tokens=count(unit.messages))


@given(window=windows, results=turns)
@example(window=32_768, results=[[1, 80], [18]])
@settings(deadline=None, max_examples=8)
@pytest.mark.parametrize("name", [policy.name for policy in choices()])
def test_no_results_make_a_request_longer_than_the_window(name: str, window: int, results: list[list[int]]) -> None:
    units, level = numbered(system()), Level.HEALTHY
    for number, shares in enumerate(results):
        said = [model(prose(f"a{number}", 30)), user(f"Message {number}."), called(name, window, units, shares, number)]
        units = sent(name, window, numbered(*units, *said), level) or numbered(system())
        level = judge(Usage(FRAME + total_tokens(units), 30), Thresholds(window)).level
