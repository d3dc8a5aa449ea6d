"""Masking of old images before any policy's rewrite; where that is enough, nothing else happens."""

from collections.abc import Callable
from dataclasses import replace

from remediation.context import Rewritten, StrategyStep, Toolbox, total_tokens
from remediation.policies.policy import RewriteTask
from remediation.strategies.carrying import removed_from
from remediation.strategies.image_masking import mask_old_images


def images_first(
    task: RewriteTask, toolbox: Toolbox, rewrite: Callable[[RewriteTask, Toolbox], Rewritten]
) -> Rewritten:
    """Run the rewrite on a view whose old images were masked, unless the masking is enough by itself."""
    started, before = toolbox.clock(), total_tokens(task.units)
    masked = mask_old_images(task.units, task.target, toolbox)
    after = total_tokens(masked)
    if after >= before:
        return rewrite(task, toolbox)
    step = StrategyStep("mask_images", before, after, "old images gave way to lines that name them")
    alone = Rewritten(
        masked, removed_from(task.units, masked), before, after, (step,), millis=toolbox.clock() - started
    )
    if after <= task.target:
        return alone
    done = rewrite(replace(task, units=masked), toolbox)
    if done.failure:
        return alone if after <= task.limit else replace(done, units=task.units, est_before=before, est_after=before)
    return replace(done, removed=removed_from(task.units, done.units), est_before=before, steps=(step, *done.steps))
