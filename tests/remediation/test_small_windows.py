"""A long talk in windows of every size, by the rules alone: when a rewrite is due, what it leaves, what is recalled."""

from dataclasses import dataclass, replace

import pytest

from dominds.llm.usage import Usage
from health.levels import Level, Thresholds, judge
from remediation.budget import Budget, LastRewrite, answer_room
from remediation.config import ContextConfig
from remediation.context import Context, total_tokens
from remediation.decisions import Accept, Compact, Proceed, Reject, Rewrite
from remediation.policies import decide, on_tool_result
from remediation.policies.breaking import warning_share
from remediation.policies.newest_whole import with_newest_whole
from remediation.policies.policy import RewriteTask
from remediation.policies.registry import policy_named
from tests.remediation.building import model, numbered, prose, system, tool, toolbox, user

FRAME = 750  # tokens of instructions and tools, as installed
WINDOWS = [2_048, 3_000, 4_096, 8_192, 32_768, 200_000]
SHAPES = {"one-line": (12, 25), "paragraphs": (100, 93), "answers": (20, 420)}  # tokens of a message and of its answer


@dataclass
class Talk:
    """What came of a talk. Shares are of the window."""

    places: list[int]
    made_at: list[float]
    gauges: list[tuple[float, float]]  # before and after each rewrite, recalled text included
    levels: list[Level]
    others: list[object]  # decisions that neither answer nor rewrite
    aims: list[int]

    @property
    def between(self) -> int:
        return min((later - earlier for earlier, later in zip(self.places, self.places[1:], strict=False)), default=99)


def budget_of(window: int, view: int, stays: int, policy: str = "autocompaction") -> Budget:
    rules = policy_named(policy)
    return Budget(
        limit=window,
        window=window,
        frame=FRAME,
        view=view,
        stays=stays,
        answer=answer_room(None, window),
        counts_answer=rules.reserves_answer,
        optimal=Thresholds(window).effective_optimal_max,
        critical=Thresholds(window).effective_critical_max,
    )


def talk(window: int, message: int, answer: int, *, recalls: bool, policy: str = "autocompaction") -> Talk:
    """Talk for as long as three rewrites could take. A rewrite comes to its aim, and recall takes all that it may."""
    result, view, last, level, is_full = Talk([], [], [], [], [], []), 0, None, Level.HEALTHY, False
    for number in range(3 * window // (message + answer) + 20):
        view += message
        last = last and replace(last, messages_since=last.messages_since + 1)
        budget = budget_of(window, view, message, policy)
        decision = decide(policy_named(policy), Context(level, budget, last_rewrite=last))
        recalled = budget.recall_room() if recalls and is_full else 0
        if isinstance(decision, Rewrite):
            before = budget.prompt + recalled
            room = budget.units_room(decision.target_tokens)
            view = max(message, room)
            budget = budget_of(window, view, message, policy).after_rewrite(before)
            recalled, is_full = budget.recall_room() if recalls else 0, True
            after = budget.prompt + recalled
            last = LastRewrite(before - after, after, 0)
            result.places.append(number)
            result.made_at.append(before / window)
            result.gauges.append((before / window, after / window))
            result.aims.append(room)
        elif not isinstance(decision, Proceed):
            result.others.append(decision)
        level = judge(Usage(budget.prompt + recalled, answer), Thresholds(window)).level
        result.levels.append(level)
        view += answer
    return result


@pytest.mark.parametrize("recalls", [True, False], ids=["recall", "alone"])
@pytest.mark.parametrize(
    ("shape", "window"),  # 16,000 lines that fill the largest take seconds, and the others of its size show the same
    [(shape, window) for shape in SHAPES for window in WINDOWS if (shape, window) != ("one-line", 200_000)],
)
@pytest.mark.parametrize("policy", ["autocompaction", "retention", "summarize", "breaking"])
def test_rewrites_are_worth_it_and_stay_apart(policy: str, shape: str, window: int, recalls: bool) -> None:
    result = talk(window, *SHAPES[shape], recalls=recalls, policy=policy)
    assert result.others == [] and Level.CRITICAL not in result.levels, "nothing that fits is cleared or refused"
    assert all(after < before and after <= 0.6 for before, after in result.gauges)
    if window >= 4_096:
        assert len(result.places) >= 2
        assert all(share >= 0.65 for share in result.made_at)
        assert all(room >= 200 for room in result.aims), "there is something left to write in"


@pytest.mark.parametrize(("shape", "least"), [("paragraphs", 5), ("one-line", 12)])
def test_at_the_default_window_of_a_local_server_rewrites_are_rare(shape: str, least: int) -> None:
    assert talk(4_096, *SHAPES[shape], recalls=True).between >= least


def test_a_first_message_is_never_rewritten() -> None:
    for window in WINDOWS:
        context = Context(Level.UNKNOWN, budget_of(window, 34, 34))
        assert decide(policy_named("autocompaction"), context) == Proceed()


def test_a_result_that_fits_is_taken_whatever_smaller_ones_are() -> None:
    """At 8,192, 13,812 characters were cut and 15,581 were not."""
    context = Context(Level.HEALTHY, budget_of(8_192, 3_000, 60))
    answers = [on_tool_result(policy_named("autocompaction"), context, size) for size in range(100, 9_000, 100)]
    kinds = [type(answer) for answer in answers]
    assert kinds == sorted(kinds, key=[Accept, Compact, Reject].index), "first taken, then compacted, then not"
    assert isinstance(on_tool_result(policy_named("autocompaction"), context, 6_000), Compact), (
        "60 and 6,000 fit beside 750"
    )


def test_a_log_at_93_percent_of_a_budget_stays_whole() -> None:
    """The next question is about it."""
    policy, log = (
        policy_named("breaking"),
        "\n".join(f"2026-03-04 10:11:{n:02} INFO worker {n} took job {n}" for n in range(60)),
    )
    talked = [(user if n % 2 else model)(prose(f"old{n}", 300)) for n in range(10)]
    units = numbered(system(), *talked, user("Look at this log."), tool(log, id="log"))
    limit = total_tokens(units) * 100 // 93
    assert policy.rewrite is not None
    task = RewriteTask(units, limit, limit // 2, 0, 0, limit, ContextConfig())
    rewritten = with_newest_whole(task, toolbox(), policy.rewrite)
    assert rewritten.failure == ""
    assert rewritten.units[-1].messages == units[-1].messages


def test_a_budget_of_5_000_always_triggers_at_4_000() -> None:
    budget = replace(budget_of(5_000, 0, 10, "breaking"), trigger_share=warning_share(ContextConfig()))
    assert budget.trigger == budget.after_rewrite(4_100).trigger == 4_000
    assert Thresholds(5_000).effective_critical_max == 4_500, "a policy acts before it is critical, at every window"


def test_a_message_that_fits_its_budget_fails_for_no_rewrite() -> None:
    """With ``recovery_mode: error`` messages of est. 4,203 and 4,839 of 5,000 failed."""
    for prompt in (4_203, 4_839):
        assert replace(budget_of(5_000, prompt - FRAME, 10, "breaking"), window=200_000).fits
    assert not replace(budget_of(5_000, 5_001 - FRAME, 10, "breaking"), window=200_000).fits
