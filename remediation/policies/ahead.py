"""Rewrites ahead of time: whether a policy's next one is near enough to be made while the dialog rests. Pure."""

from dataclasses import dataclass, replace

from remediation.context import Context
from remediation.decisions import Rewrite
from remediation.policies import decide
from remediation.policies.policy import Policy, RewriteTask

NEAR_PERCENT = 65  # a rewrite is prepared once the request has this share of the size at which the policy rewrites


@dataclass(frozen=True, slots=True)
class Ahead:
    """The rewrite that comes next. It is due once the context has grown by ``growth`` tokens."""

    decision: Rewrite
    growth: int

    def leaving_room(self, task: RewriteTask) -> RewriteTask:
        """Return the task with less room, since the messages that arrive until it is due will stand word for word."""
        target = max(task.target // 2, task.target - self.growth)
        return replace(
            task,
            limit=max(target, task.limit - self.growth),
            target=max(1, target),
            request_limit=max(1, task.request_limit - self.growth),
        )


def rewrite_ahead(policy: Policy, context: Context) -> Ahead | None:
    """Return the rewrite that the policy will want once the context has grown, and by how much.

    The result is None while that is far off, where the rewrite would not pay, and where no budget in USD is left.
    """
    if policy.rewrite is None or context.limit is None:
        return None
    now = context.budget.taken
    near = now * 100 // NEAR_PERCENT
    due = _rewrite_at(policy, context, near)
    if due is None:
        return None
    least, most = now, near  # bisect for the smallest size at which the policy rewrites
    while least < most:
        middle = (least + most) // 2
        if earlier := _rewrite_at(policy, context, middle):
            due, most = earlier, middle
        else:
            least = middle + 1
    return Ahead(due, most - now)


def _rewrite_at(policy: Policy, context: Context, tokens: int) -> Rewrite | None:
    """Return the rewrite that the policy itself would decide on at a size of ``tokens``, or None."""
    budget = context.budget
    grown = replace(
        context,
        budget=replace(budget, view=budget.view + tokens - budget.taken),
        changed=True,
        overflowed=False,
        restarts=0,
        last_rewrite=None,  # many messages may arrive until then, so the last rewrite does not hold up this one
    )
    decision = decide(policy, grown)
    return decision if isinstance(decision, Rewrite) and decision.policy == policy.name else None
