"""Protection of the newest exchange, which any policy's rewrite keeps word for word wherever it fits."""

from collections.abc import Callable
from dataclasses import replace

from remediation.context import Rewritten, Toolbox, UnitRole
from remediation.policies.policy import RewriteTask
from remediation.strategies.carrying import removed_from
from remediation.strategies.masking import FRESH_UNITS
from remediation.strategies.outcome import standing, standing_tokens


def with_newest_whole(
    task: RewriteTask, toolbox: Toolbox, rewrite: Callable[[RewriteTask, Toolbox], Rewritten]
) -> Rewritten:
    """Rewrite with the newest units pinned: the last one while it fits at all, those before it while the rewrite keeps
    to its aim."""
    kept = newest_that_fit(task)
    if not kept:
        return rewrite(task, toolbox)
    units = tuple(replace(unit, pinned=True) if unit.id in kept else unit for unit in task.units)
    rewritten = rewrite(replace(task, units=units), toolbox)
    view = tuple(replace(unit, pinned=False) if unit.id in kept else unit for unit in rewritten.units)
    if rewritten.failure:
        return replace(rewritten, units=task.units)
    return replace(rewritten, units=view, removed=removed_from(task.units, view))


def newest_that_fit(task: RewriteTask) -> frozenset[str]:
    """Return the ids of those newest units that no rewrite is to touch, beside what stands in any case.

    A larger unit never stays where a smaller one would not: each is held against what is left, newest first.
    """
    units, kept = task.units, set[str]()
    # An answer that was cut is gone on from, and its own policy knows how.
    if not units or units[-1].role is UnitRole.ASSISTANT:
        return frozenset()
    stays = standing(units)
    used = standing_tokens(units)
    for place in range(len(units) - 1, max(-1, len(units) - 1 - FRESH_UNITS), -1):
        if place in stays:
            continue
        most = task.limit if place == len(units) - 1 else min(task.limit, task.target)
        if used + units[place].est_tokens > most:
            break
        used += units[place].est_tokens
        kept.add(units[place].id)
    return frozenset(kept)
