"""Context breaking's recovery mode ``truncate``: what must stay, priority 1, and the newest units that fit."""

from dataclasses import replace

from remediation.context import Rewritten, Toolbox, total_tokens
from remediation.strategies.carrying import ledger_budget
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible
from remediation.strategies.outcome import standing, tokens_at, with_newest


def truncate(attempt: Attempt, target_tokens: int, toolbox: Toolbox) -> Rewritten:
    """Keep system prompts, pinned units and the newest user message; then priority 1, up to the limit; then the
    newest others.

    Others are kept without a gap, newest first, while they fit into ``target_tokens``.
    """
    attempt = replace(attempt, recovered=True)
    units, limit = attempt.before, attempt.limit
    toolbox.report("recovery", total_tokens(units), limit)
    kept = standing(units)
    if tokens_at(units, kept) > limit:
        return fail(attempt, irreducible(units, limit), toolbox)
    important = [index for index, unit in enumerate(units) if unit.priority == 1]
    kept = with_newest(units, kept, important, limit, skip=True)
    kept = with_newest(units, kept, range(len(units)), target_tokens - ledger_budget(limit))
    rewritten = conclude(attempt, tuple(units[index] for index in sorted(kept)), toolbox)
    if not rewritten.failure:
        toolbox.report("success", rewritten.est_after, limit)
    return rewritten
