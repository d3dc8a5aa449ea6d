"""Protection of the newest exchange: any policy's rewrite keeps it word for word wherever it fits."""

from collections.abc import Callable
from dataclasses import replace

from remediation.context import Rewritten, Toolbox, UnitRole
from remediation.policies.policy import RewriteTask
from remediation.strategies.carrying import removed_from
from remediation.strategies.masking import FRESH_UNITS
from remediation.strategies.outcome import standing, standing_tokens

# The share of the target that an earlier call with its results may take, together with the units after it: the rest has
# room for an account of what went. Messages may fill the whole target. Tuned on tau-bench and threads, see
# docs/experiments.md.
SHARE_WITH_RESULTS = 2 / 3


def with_newest_whole(
    task: RewriteTask, toolbox: Toolbox, rewrite: Callable[[RewriteTask, Toolbox], Rewritten]
) -> Rewritten:
    """Rewrite with those of the newest units pinned that ``newest_that_fit`` names."""
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
    """Return the ids of the newest units that a rewrite must keep in addition to those that always stand.

    The last unit stays if it fits the limit. Those before it stay as long as they fit the target (a call with its
    results: SHARE_WITH_RESULTS of it), newest first, up to the first that does not.
    """
    units, kept = task.units, set[str]()
    # A view that ends with an answer was cut while it streamed. Its policy decides how the answer goes on.
    if not units or units[-1].role is UnitRole.ASSISTANT:
        return frozenset()
    stays = standing(units)
    used = standing_tokens(units)
    for place in range(len(units) - 1, max(-1, len(units) - 1 - FRESH_UNITS), -1):
        if place in stays:
            continue
        share = SHARE_WITH_RESULTS if units[place].role is UnitRole.TOOL else 1
        most = task.limit if place == len(units) - 1 else min(task.limit, int(task.target * share))
        if used + units[place].est_tokens > most:
            break
        used += units[place].est_tokens
        kept.add(units[place].id)
    return frozenset(kept)
