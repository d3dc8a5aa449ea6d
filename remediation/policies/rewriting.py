"""A policy's rewrite with what all rewrites have in common."""

from dataclasses import replace
from functools import partial

from remediation.context import Rewritten, Toolbox
from remediation.policies.images_first import images_first
from remediation.policies.laws import broken_law
from remediation.policies.newest_whole import with_newest_whole
from remediation.policies.policy import Policy, RewriteTask


def rewrite_by(policy: Policy, task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    """Rewrite as the policy does. A result that breaks a law of all rewrites is refused: the view stays as it was."""
    assert policy.rewrite is not None, f"{policy.name} has no rewrite"
    rewritten = images_first(task, toolbox, partial(with_newest_whole, rewrite=policy.rewrite))
    if rewritten.failure or not (broken := broken_law(task.units, rewritten.units)):
        return rewritten
    before = rewritten.est_before
    failure = f"The policy {policy.name} {broken}."
    return replace(rewritten, units=task.units, removed=(), est_after=before, failure=failure)
