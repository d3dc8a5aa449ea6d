"""Masking of old images before any policy's rewrite. Where that is enough, the policy is not asked."""

from collections.abc import Callable
from dataclasses import replace

from remediation.context import Rewritten, StrategyStep, Toolbox, total_tokens
from remediation.policies.policy import RewriteTask
from remediation.strategies.carrying import removed_from
from remediation.strategies.image_masking import mask_old_images


def images_first(
    task: RewriteTask, toolbox: Toolbox, rewrite: Callable[[RewriteTask, Toolbox], Rewritten]
) -> Rewritten:
    """Mask old images, and run the policy's rewrite on the rest unless masking alone reaches the target.

    If the policy's rewrite fails, the masked view stands alone, provided that it fits the limit.
    """
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
