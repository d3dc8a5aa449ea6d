"""Importance retention: when utilisation is over 80 %, the least important units go. People can also prune by hand."""

from collections.abc import Sequence
from dataclasses import replace

from remediation.budget import is_above
from remediation.context import Context, Rewritten, Toolbox, Units, total_tokens
from remediation.decisions import Decision, Proceed
from remediation.policies.policy import ByHand, CountingFacts, Event, Policy, RewriteTask, rewrite_due
from remediation.strategies.conclusion import Attempt, fail
from remediation.strategies.importance import TARGET_PERCENT, limit_by_name, remove, retain


def before_generation(context: Context) -> Decision:
    return decide(context, POLICY)


def decide(context: Context, policy: Policy) -> Decision:
    """Return a rewrite by this policy where utilisation is over 80 %."""
    return rewrite_due(context, policy.name) if context.wants_rewrite else Proceed()


def window_or_table(facts: CountingFacts) -> int:
    """Return the window. If the catalog knows none, a table of model names gives one."""
    return facts.window or limit_by_name(facts.model_id)


def rewrite(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    return retain(task.units, task.limit, task.target, task.config.retention.weights, toolbox)


def manage(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    """Prune if more than 80 % of the limit is taken. Otherwise fail, which leaves the view unchanged."""
    tokens, limit = total_tokens(task.units) + task.fixed, task.request_limit
    if is_above(tokens, limit, TARGET_PERCENT):
        return rewrite(task, toolbox)
    says = f"est. {tokens:,} of {limit:,} tokens are taken, and pruning begins above {TARGET_PERCENT} %."
    return fail(Attempt(task.units, task.limit, toolbox.clock()), f"Nothing to manage: {says}", toolbox)


def prune(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    """Remove the least important messages, without an account of them."""
    return remove(task.units, task.limit, task.target, task.config.retention.weights, toolbox)


def pruned_event(rewritten: Rewritten) -> Event:
    return "context:pruned", {
        "original": rewritten.est_before,
        "final": rewritten.est_after,
        "removed": len(rewritten.removed),
        "tokenReduction": rewritten.est_before - rewritten.est_after,
    }


def prune_events(_before: Units, rewritten: Rewritten) -> Sequence[Event]:
    return (pruned_event(rewritten),)


def events(before: Units, rewritten: Rewritten) -> Sequence[Event]:
    removed = len(rewritten.removed)
    summarized = {"summarized": removed, "kept": len(before) - removed, "summary": rewritten.summary}
    return (pruned_event(rewritten), ("context:summarized", summarized))


POLICY = Policy(
    name="retention",
    label="importance retention",
    sentence="Prunes the least important messages, keeps them in an archive, and leaves an account of them.",
    automatic="Context is automatically pruned before API calls when utilization exceeds 80%",
    title="Context pruned",
    place=20,
    before_generation=before_generation,
    limit=window_or_table,
    rewrite=rewrite,
    events=events,
)

PRUNE = replace(
    POLICY,
    name="prune",
    label="pruning",
    sentence="Removes the least important messages, and writes nothing in their place.",
    is_choice=False,  # only people ask for it
    before_generation=None,
    rewrite=prune,
    events=prune_events,
    by_hand=ByHand(
        verb="prune",
        label="Prune",
        button="Prune Context Now",
        does="Keep the most important messages.",
        hint="The least important messages go, and nothing stands for them.",
        preview_note="What is new or pinned stays; then, within three quarters of the room, constraints and failures; "
        "then the highest scores.",
        shows_scores=True,
        beside_warning=True,
        target_percent=TARGET_PERCENT,
    ),
)

MANAGE = replace(
    POLICY,
    name="auto_manage",
    label="management",
    sentence="Prunes where more than 80 % of the limit is taken, with an account of what goes.",
    is_choice=False,  # agents have the policy ``retention``, which does this by itself
    before_generation=None,
    rewrite=manage,
    by_hand=ByHand(
        verb="auto_manage",
        label="Manage",
        button="Manage Context",
        does="Prune to 80 % of the limit where more is taken; otherwise nothing.",
        hint="As pruning, but only where it is nearly full, and with an account of what went.",
        preview_note="Where more than 80 % of the limit is taken, the least important goes, and leaves an account.",
        target_percent=TARGET_PERCENT,
    ),
)
