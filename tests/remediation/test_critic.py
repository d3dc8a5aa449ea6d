"""What the critic proposes, and when it keeps quiet."""

from dataclasses import replace

from remediation.context import StrategyStep
from remediation.critic import PastError, PastRewrite, propose

CHAIN = ("summarize_old", "prioritize_recent", "hybrid")
STEPS = (StrategyStep("summarize_old", 1000, 600), StrategyStep("prioritize_recent", 600, 500))
GOOD = PastRewrite("ana", 5000, 32_000, CHAIN, STEPS, 1.1, False)
BAD = replace(GOOD, reward=-0.7, recovered=True)


def test_nothing_is_proposed_while_all_is_well() -> None:
    assert propose([GOOD] * 10, []) == ()


def test_few_outcomes_prove_nothing() -> None:
    assert propose([BAD] * 4, []) == ()


def test_frequent_recovery_asks_for_a_higher_limit_with_its_grounds() -> None:
    [draft] = propose([GOOD] * 3 + [BAD] * 3, [PastError("ana", "BREAKER_FAILED")])
    assert (draft.agent, draft.kind, draft.change) == ("ana", "limit", {"context_limit": 6000})
    assert "3 of 6" in draft.grounds
    assert "1 context errors" in draft.grounds


def test_many_errors_ask_for_it_too() -> None:
    [draft] = propose([GOOD] * 6, [PastError("ana", "TOKEN_LIMIT_EXCEEDED")] * 5)
    assert draft.kind == "limit"


def test_errors_of_others_do_not_count() -> None:
    assert propose([GOOD] * 6, [PastError("bob", "TOKEN_LIMIT_EXCEEDED")] * 9) == ()


def test_a_limit_is_never_raised_above_the_window() -> None:
    [draft] = propose([replace(BAD, window=5500)] * 5, [])
    assert draft.change == {"context_limit": 5500}
    assert propose([replace(BAD, window=5000)] * 5, []) == ()


def test_an_unknown_window_does_not_bound() -> None:
    assert propose([replace(BAD, window=None)] * 5, [])[0].change == {"context_limit": 6000}


def test_the_strategy_that_works_is_moved_to_the_front() -> None:
    steps = (StrategyStep("summarize_old", 1000, 990), StrategyStep("prioritize_recent", 990, 500))
    [draft] = propose([replace(GOOD, steps=steps)] * 5, [])
    assert draft.kind == "order"
    assert draft.change == {"chain_order": ["prioritize_recent", "summarize_old", "hybrid"]}
    assert "49%" in draft.grounds


def test_a_small_difference_changes_no_order() -> None:
    steps = (StrategyStep("summarize_old", 1000, 700), StrategyStep("prioritize_recent", 700, 450))
    assert propose([replace(GOOD, steps=steps)] * 5, []) == ()


def test_a_strategy_seen_once_is_not_believed() -> None:
    rare = replace(GOOD, steps=(*STEPS[:1], StrategyStep("prioritize_recent", 600, 10)))
    first_only = replace(GOOD, steps=STEPS[:1])
    assert propose([first_only] * 8 + [rare], []) == ()


def test_agents_are_judged_apart() -> None:
    drafts = propose([BAD] * 5 + [replace(BAD, agent="bob")] * 5 + [replace(GOOD, agent="eve")] * 5, [])
    assert [draft.agent for draft in drafts] == ["ana", "bob"]
