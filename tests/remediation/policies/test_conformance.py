"""The product's own policies keep the laws that plug-ins are held to."""

import itertools

import pytest

from remediation.context import Rewritten, Toolbox, total_tokens
from remediation.policies import autocompaction, breaking, fresh_start, none, retention, summarize
from remediation.policies.conformance import PolicyConformance
from remediation.policies.policy import Policy, RewriteTask


class TestNone(PolicyConformance):
    policy = none.POLICY


class TestRetention(PolicyConformance):
    policy = retention.POLICY
    keeps_priority_one = False  # goes by scores


class TestPrune(PolicyConformance):
    policy = retention.PRUNE
    keeps_priority_one = False  # as retention


class TestManage(PolicyConformance):
    policy = retention.MANAGE
    keeps_priority_one = False  # as retention


class TestSummarize(PolicyConformance):
    policy = summarize.POLICY
    keeps_priority_one = False  # goes by age


class TestBreaking(PolicyConformance):
    policy = breaking.POLICY


class TestAutocompaction(PolicyConformance):
    policy = autocompaction.POLICY
    keeps_priority_one = False  # goes by the pruning agent's judgement


class TestFreshStart(PolicyConformance):
    policy = fresh_start.POLICY


def test_a_policy_that_drops_the_system_prompt_is_caught() -> None:
    def rewrite(task: RewriteTask, _toolbox: Toolbox) -> Rewritten:
        units = task.units[1:]
        return Rewritten(units, task.units[:1], total_tokens(task.units), total_tokens(units))

    class Lawless(PolicyConformance):
        policy = Policy(name="lawless", label="lawless", sentence="Breaks a law.", title="Broken", rewrite=rewrite)

    with pytest.raises(AssertionError, match="changed or moved a system prompt"):
        Lawless().test_a_rewrite_keeps_the_laws_or_changes_nothing()


def test_a_policy_that_rolls_dice_is_caught() -> None:
    ticks = itertools.count()

    def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
        return Rewritten(task.units, (), 0, 0, failure=f"not today ({next(ticks)})")

    class Dicer(PolicyConformance):
        policy = Policy(name="dicer", label="dicer", sentence="Rolls dice.", title="Rolled", rewrite=rewrite)

    with pytest.raises(AssertionError, match="failure differs"):
        Dicer().test_the_same_task_gives_the_same_view()
