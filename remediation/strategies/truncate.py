"""Context breaking's recovery mode ``truncate``: what must stay, priority 1, and the newest units that fit."""

from dataclasses import replace

from remediation.context import Rewritten, Toolbox, Units
from remediation.strategies.carrying import ledger_budget
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible
from remediation.strategies.outcome import is_ledger, standing


def truncate(attempt: Attempt, target_tokens: int, toolbox: Toolbox) -> Rewritten:
    """Keep system prompts, pinned units and the newest user message; then priority 1, up to the limit; then the
    newest others.

    Others are kept without a gap, newest first, while they fit into ``target_tokens``.
    """
    attempt = replace(attempt, recovered=True)
    units, limit = attempt.before, attempt.limit
    toolbox.report("recovery", sum(unit.est_tokens for unit in units), limit)
    kept = standing(units)
    used = sum(units[index].est_tokens for index in kept)
    if used > limit:
        return fail(attempt, irreducible(units, limit), toolbox)
    important = [i for i, unit in enumerate(units) if unit.priority == 1 and not is_ledger(unit) and i not in kept]
    kept |= newest_fitting(units, important, limit - used, skip=True)
    used = sum(units[index].est_tokens for index in kept)
    others = [i for i, unit in enumerate(units) if i not in kept and not is_ledger(unit)]
    kept |= newest_fitting(units, others, target_tokens - ledger_budget(limit) - used)
    rewritten = conclude(attempt, tuple(units[index] for index in sorted(kept)), toolbox)
    if not rewritten.failure:
        toolbox.report("success", rewritten.est_after, limit)
    return rewritten


def newest_fitting(units: Units, candidates: list[int], room: int, skip: bool = False) -> set[int]:
    """Return the newest candidates within ``room`` tokens, up to the first that does not fit unless ``skip`` is set."""
    chosen: set[int] = set()
    for index in reversed(candidates):
        if units[index].est_tokens <= room:
            chosen.add(index)
            room -= units[index].est_tokens
        elif not skip:
            break
    return chosen
