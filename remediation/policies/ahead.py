"""Preparation ahead: whether a policy's next rewrite is near enough to be made while the dialog rests. Pure."""

from dataclasses import dataclass, replace

from remediation.context import Context
from remediation.decisions import Rewrite
from remediation.policies import decide
from remediation.policies.policy import Policy, RewriteTask

NEAR_PERCENT = 65  # of the size from which on the policy rewrites


@dataclass(frozen=True, slots=True)
class Ahead:
    """The rewrite that comes next. The context may grow by ``growth`` tokens until it is due."""

    decision: Rewrite
    growth: int

    def leaving_room(self, task: RewriteTask) -> RewriteTask:
        """The rewrite of what there is now, beside which what is said until then will stand word for word."""
        target = max(task.target // 2, task.target - self.growth)
        return replace(
            task,
            limit=max(target, task.limit - self.growth),
            target=max(1, target),
            request_limit=max(1, task.request_limit - self.growth),
        )


def rewrite_ahead(policy: Policy, context: Context) -> Ahead | None:
    """The rewrite that the policy will want once more is said; None while it is far,
    does not pay or no budget is left."""
    if policy.rewrite is None or context.limit is None:
        return None
    now = context.budget.taken
    near = now * 100 // NEAR_PERCENT
    due = _rewrite_at(policy, context, near)
    if due is None:
        return None
    least, most = now, near  # the policy rewrites at the latter
    while least < most:
        middle = (least + most) // 2
        if earlier := _rewrite_at(policy, context, middle):
            due, most = earlier, middle
        else:
            least = middle + 1
    return Ahead(due, most - now)


def _rewrite_at(policy: Policy, context: Context, tokens: int) -> Rewrite | None:
    """The policy's own rewrite for the next message, if it reaches its target."""
    budget = context.budget
    grown = replace(
        context,
        budget=replace(budget, view=budget.view + tokens - budget.taken),
        changed=True,
        overflowed=False,
        restarts=0,
        last_rewrite=None,  # whatever is said until then may be many messages
    )
    decision = decide(policy, grown)
    return decision if isinstance(decision, Rewrite) and decision.policy == policy.name else None
