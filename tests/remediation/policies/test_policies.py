"""What each policy decides, as tables."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.levels import Level
from remediation.budget import Budget
from remediation.context import Context
from remediation.decisions import (
    Abort,
    Accept,
    ClearMind,
    Compact,
    Continue,
    Decision,
    Fail,
    ForceClear,
    Interrupt,
    Proceed,
    Reject,
    Rewrite,
    Suspend,
)
from remediation.guidance import CLEAR_ONLY, CLEAR_OR_REMIND, countdown_guidance, forced_clear
from remediation.policies import (
    autocompaction,
    breaking,
    decide,
    guided,
    on_tool_result,
    requested,
    retention,
    while_streaming,
)
from remediation.policies.policy import Policy
from remediation.policies.registry import own, policy_named

CHOICES = [policy for policy in own() if policy.is_choice]

GREEN, YELLOW, RED, GRAY = Level.HEALTHY, Level.CAUTION, Level.CRITICAL, Level.UNKNOWN
PLAIN = Proceed()
ASK, FORCE = Proceed(guidance=CLEAR_OR_REMIND), ForceClear(CLEAR_ONLY)


def full(tokens: int, limit: int | None) -> Budget:
    return Budget(limit=limit, view=tokens)


def filled(limit: int, change: dict[str, Any]) -> Context:
    """A healthy context; ``est_tokens``, ``limit`` and ``trigger_share`` are the budget's."""
    rest = dict(change)
    budget = full(rest.pop("est_tokens", 0), rest.pop("limit", limit))
    return Context(GREEN, replace(budget, trigger_share=rest.pop("trigger_share", 0.8)), **rest)


contexts = st.builds(
    Context,
    level=st.sampled_from(list(Level)),
    budget=st.builds(Budget, limit=st.none() | st.integers(1, 10_000), view=st.integers(0, 20_000)),
    changed=st.booleans(),
    overflowed=st.booleans(),
    restarts=st.integers(0, 4),
    failed_clears=st.integers(0, 4),
    kept_since_guidance=st.none() | st.integers(0, 12),
    guided_generations=st.integers(0, 7),
    countdown=st.booleans(),
    over_hits_last_hour=st.integers(0, 4),
    loop_detected=st.booleans(),
    interrupted=st.booleans(),
    requested=st.sampled_from(["", "prune", "break", "compact", "fresh_start", "clear"]),
)


# Guidance, behind every policy


@pytest.mark.parametrize(
    ("context", "decision"),
    [
        (Context(GREEN), PLAIN),
        (Context(GRAY), PLAIN),
        (Context(GRAY, failed_clears=2), PLAIN),  # unknown does not force, nor does it close the episode
        (Context(YELLOW), ASK),
        (Context(YELLOW, kept_since_guidance=9), PLAIN),
        (Context(YELLOW, kept_since_guidance=10), ASK),
        (Context(YELLOW, kept_since_guidance=3, cadence=3), ASK),
        (Context(RED), FORCE),
        (Context(RED, failed_clears=2), ForceClear(forced_clear(2))),
        (Context(GREEN, overflowed=True), FORCE),
        (Context(GRAY, overflowed=True), FORCE),
    ],
)
def test_guided(context: Context, decision: Decision) -> None:
    assert guided.before_generation(context) == decision


@pytest.mark.parametrize("failed", [3, 4])
def test_three_failed_clears_suspend(failed: int) -> None:
    decision = guided.before_generation(Context(RED, failed_clears=failed))
    assert isinstance(decision, Suspend)
    assert decision.kind == "context_health_critical"


@pytest.mark.parametrize(
    ("generations", "decision"),
    [(0, Proceed(guidance=countdown_guidance(5))), (4, Proceed(guidance=countdown_guidance(1)))],
)
def test_the_countdown_guides_and_discards_nothing(generations: int, decision: Decision) -> None:
    context = Context(RED, countdown=True, guided_generations=generations, failed_clears=3)
    assert guided.before_generation(context) == decision


@pytest.mark.parametrize("change", [{"guided_generations": 5}, {"overflowed": True}])
def test_the_countdown_ends_with_a_clear_by_itself(change: dict[str, Any]) -> None:
    context = replace(Context(RED, countdown=True), **change)
    assert isinstance(guided.before_generation(context), ClearMind)


# Autocompaction: 80 % of 10,000 is 8,000; it aims at half


@pytest.mark.parametrize(
    ("change", "rewrites"),
    [
        ({"est_tokens": 8_000}, False),
        ({"est_tokens": 8_001}, True),
        ({"est_tokens": 8_001, "changed": False}, False),
        ({"est_tokens": 100, "interrupted": True}, True),
        ({"est_tokens": 99_999, "limit": None}, False),
        ({"est_tokens": 8_001, "restarts": 2}, True),
    ],
)
def test_autocompaction(change: dict[str, Any], rewrites: bool) -> None:
    decision = autocompaction.before_generation(filled(10_000, change))
    if rewrites:
        assert isinstance(decision, Rewrite)
        assert (decision.policy, decision.target_tokens) == ("autocompaction", 5_000)
    else:
        assert decision == PLAIN


def test_after_three_compactions_autocompaction_says_what_to_do() -> None:
    decision = autocompaction.before_generation(Context(GREEN, full(9_000, 10_000), restarts=3))
    assert isinstance(decision, Fail)
    assert decision.code == "TOKEN_LIMIT_EXCEEDED"
    assert "9,000 of 10,000" in decision.message


@pytest.mark.parametrize(
    ("used", "limit", "answer"),
    [
        (8_999, 10_000, Continue),
        (9_000, 10_000, Interrupt),
        (9_999, 10_000, Interrupt),
        (10_000, 10_000, Abort),
        (99_999, None, Continue),
    ],
)
def test_autocompaction_while_streaming(used: int, limit: int | None, answer: type) -> None:
    assert isinstance(autocompaction.while_streaming(used, limit), answer)


@pytest.mark.parametrize(
    ("result", "limit", "answer"),
    [
        (4_000, 10_000, Accept),  # 6,000 + 4,000 fits exactly
        (4_001, 10_000, Compact),
        (10_000, 10_000, Compact),
        (10_001, 10_000, Reject),  # alone larger than the window
        (99_999, None, Accept),
    ],
)
def test_autocompaction_on_a_tool_result(result: int, limit: int | None, answer: type) -> None:
    context = Context(GREEN, full(6_000, limit))
    assert isinstance(autocompaction.on_tool_result(context, result), answer)


# Breaking: warning above 80 % of 5,000 = 4,000


@pytest.mark.parametrize(
    ("change", "policy"),
    [
        ({"est_tokens": 4_000}, ""),
        ({"est_tokens": 4_001}, "breaking"),
        ({"est_tokens": 6_000}, "breaking"),
        ({"est_tokens": 6_000, "changed": False}, ""),
        ({"est_tokens": 100, "overflowed": True}, "breaking"),
        ({"est_tokens": 4_001, "over_hits_last_hour": 2}, "breaking"),
        ({"est_tokens": 4_001, "over_hits_last_hour": 3}, "fresh_start"),  # more than 2 in an hour
        ({"est_tokens": 100, "over_hits_last_hour": 3}, ""),
        ({"est_tokens": 100, "loop_detected": True}, "fresh_start"),
        ({"est_tokens": 3_000, "trigger_share": 0.5}, "breaking"),
        ({"est_tokens": 99_999, "limit": None}, ""),
    ],
)
def test_breaking(change: dict[str, Any], policy: str) -> None:
    decision = breaking.before_generation(filled(5_000, change))
    if policy:
        assert isinstance(decision, Rewrite)
        is_refused = bool(change.get("overflowed"))
        assert (decision.policy, decision.target_tokens) == (policy, 50 if is_refused else 2_500), "half of what it is"
    else:
        assert decision == PLAIN


# Retention


@pytest.mark.parametrize(
    ("change", "rewrites"),
    [
        ({"est_tokens": 8_000}, False),
        ({"est_tokens": 8_001}, True),
        ({"est_tokens": 8_001, "changed": False}, False),
        ({"est_tokens": 99_999, "limit": None}, False),
    ],
)
def test_retention(change: dict[str, Any], rewrites: bool) -> None:
    decision = retention.before_generation(filled(10_000, change))
    assert isinstance(decision, Rewrite) is rewrites
    if isinstance(decision, Rewrite):
        assert (decision.policy, decision.target_tokens) == ("retention", 5_000)


def test_a_refused_view_is_halved_where_the_limit_is_assumed() -> None:
    refused = Context(GREEN, full(8_200, 100_000), overflowed=True)
    assert retention.before_generation(refused) == Rewrite(
        "retention", "the provider refused the request as too long", 4_100
    )


# By hand: all aim at half, pruning at 80 %


@pytest.mark.parametrize(
    ("asked", "policy", "target"),
    [
        ("prune", "prune", 8_000),
        ("break", "breaking", 5_000),
        ("compact", "autocompaction", 5_000),
        ("fresh_start", "fresh_start", 5_000),
    ],
)
@pytest.mark.parametrize("own", CHOICES, ids=lambda own: own.name)
def test_a_rewrite_by_hand_comes_first_whatever_the_policy(own: Policy, asked: str, policy: str, target: int) -> None:
    context = Context(RED, full(9_999, 10_000), requested=asked)
    decision = decide(own, context)
    assert isinstance(decision, Rewrite)
    assert (decision.policy, decision.target_tokens) == (policy, target)


def test_a_clear_by_hand_is_a_persons() -> None:
    assert requested.before_generation(Context(GREEN, requested="clear")) == ClearMind(
        "asked for by hand", by_person=True
    )


# All together


def test_guidance_stands_behind_every_policy() -> None:
    for policy in CHOICES:
        assert decide(policy, Context(RED, full(0, 10_000))) == FORCE
        assert decide(policy, Context(YELLOW, full(0, 10_000))) == ASK


def test_a_rewrite_that_did_not_help_gives_way_to_guidance() -> None:
    for name in ("autocompaction", "breaking", "retention"):
        assert decide(policy_named(name), Context(RED, full(9_999, 10_000), changed=False)) == FORCE


def test_only_autocompaction_watches_the_stream() -> None:
    assert [policy.name for policy in CHOICES if policy.while_streaming] == ["autocompaction"]
    assert isinstance(while_streaming(policy_named("breaking"), 99_999, 10_000), Continue)
    assert isinstance(on_tool_result(policy_named("none"), Context(GREEN, full(0, 10)), 99_999), Accept)


@given(context=contexts)
@pytest.mark.parametrize("name", [policy.name for policy in CHOICES])
def test_a_dialog_without_a_policy_is_never_rewritten_by_itself(name: str, context: Context) -> None:
    decision = decide(policy_named(name), context)
    if name == "none" and not context.requested:
        assert not isinstance(decision, Rewrite)
        # Only a countdown fails, when not even a fresh round is short enough: it never suspends.
        assert not isinstance(decision, Fail) or (
            context.countdown and context.overflowed and context.failed_clears >= 3
        )
    if isinstance(decision, Rewrite) and not context.requested:
        assert context.changed
        assert context.limit is not None


@given(context=contexts)
@pytest.mark.parametrize("name", [policy.name for policy in CHOICES])
def test_a_countdown_never_suspends(name: str, context: Context) -> None:
    assert not isinstance(decide(policy_named(name), replace(context, countdown=True)), Suspend)


@given(context=contexts)
@pytest.mark.parametrize("name", [policy.name for policy in CHOICES])
def test_only_a_forced_attempt_or_caution_carries_guidance(name: str, context: Context) -> None:
    decision = decide(policy_named(name), context)
    if isinstance(decision, Proceed | ForceClear) and decision.guidance:
        assert context.level in (YELLOW, RED) or context.overflowed
    if isinstance(decision, ForceClear):
        assert context.failed_clears < 3
        assert not context.countdown


@given(context=contexts)
@pytest.mark.parametrize("name", [policy.name for policy in CHOICES])
def test_a_proxy_is_told_nothing_and_never_asks_a_person(name: str, context: Context) -> None:
    proxy = replace(context, is_proxy=True)
    decision = decide(policy_named(name), proxy)
    assert not isinstance(decision, Suspend)
    assert decision == PLAIN or isinstance(decision, Rewrite | Fail | ClearMind)
    if isinstance(decision, ClearMind):
        assert decision.by_person


def test_a_proxys_request_fails_or_is_tried_once_after_a_rewrite() -> None:
    assert isinstance(decide(policy_named("none"), Context(GRAY, overflowed=True, is_proxy=True)), Fail)
    refused = Context(GRAY, full(9_000, 10_000), overflowed=True, is_proxy=True)
    assert isinstance(decide(policy_named("retention"), refused), Rewrite)
    assert decide(policy_named("retention"), replace(refused, changed=False)) == PLAIN


# The way that a person is advised to take

SHORTENS = requested.Gain(before=1_000, after=500, limit=1_000, keeps_words=True)
DROPS = requested.Gain(before=1_000, after=400, limit=1_000)
STARTS_OVER = requested.Gain(before=1_000, after=100, limit=1_000, keeps_words=True, starts_over=True)
LITTLE = requested.Gain(before=1_000, after=950, limit=1_000, is_own=True, keeps_words=True)


@pytest.mark.parametrize(
    ("gains", "advised"),
    [
        ([DROPS, SHORTENS], SHORTENS),  # words stand for what goes
        ([SHORTENS, STARTS_OVER], SHORTENS),
        ([LITTLE, STARTS_OVER], STARTS_OVER),  # nothing else frees a tenth
        ([SHORTENS, replace(DROPS, is_own=True)], replace(DROPS, is_own=True)),
        ([replace(SHORTENS, after=700), DROPS], DROPS),  # it leaves enough room
        ([replace(SHORTENS, after=600), replace(SHORTENS, after=550)], replace(SHORTENS, after=550)),
        ([LITTLE, replace(DROPS, after=1_000)], None),
        ([replace(DROPS, limit=None), replace(SHORTENS, limit=None)], replace(SHORTENS, limit=None)),
    ],
)
def test_the_way_that_keeps_most_and_frees_enough_is_advised(
    gains: list[requested.Gain], advised: requested.Gain | None
) -> None:
    at = requested.best_of(gains)
    assert (None if at is None else gains[at]) == advised
