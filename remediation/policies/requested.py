"""The rewrite that a person asks for by hand, whatever the agent's own policy is."""

from dataclasses import replace

from remediation.budget import percent_of
from remediation.context import Context
from remediation.decisions import AT_MILESTONE, BY_HAND, ClearMind, Decision, Fail, Proceed, Rewrite
from remediation.policies import fresh_start, registry
from remediation.policies.policy import Policy

CLEAR, MILESTONE = "clear", "milestone"


def before_generation(context: Context) -> Decision:
    if not context.requested:
        return Proceed()
    if context.requested == CLEAR:
        return ClearMind(BY_HAND, by_person=True)
    if context.requested == MILESTONE:
        return replace(rewrite_by_hand(fresh_start.POLICY, context.limit), reason=AT_MILESTONE)
    if policy := registry.with_verb(context.requested):
        return rewrite_by_hand(policy, context.limit)
    return Fail("", f"The rewrite that was asked for ({context.requested}) is not installed any more.")


def rewrite_by_hand(policy: Policy, limit: int | None) -> Rewrite:
    """Return the rewrite that the button performs and its preview shows."""
    percent = policy.by_hand.target_percent if policy.by_hand else policy.target_percent
    return Rewrite(policy.name, BY_HAND, percent_of(limit or 0, percent))
