"""Document C's recovery: begin anew with a handover summary, the ledger, and what must not be lost."""

from dataclasses import replace

from remediation.context import Rewritten, Toolbox, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.strategies.carrying import ledger_budget
from remediation.strategies.conclusion import Attempt, conclude, fail
from remediation.strategies.outcome import newest_user, task_of
from remediation.strategies.stand_ins import HANDOVER_CLOSING, HANDOVER_OPENING, stand_in, told
from remediation.strategies.summarize_old import gated_summary

HANDOVER_TOKENS = 500  # document C: "short handover"
SMALLEST_HANDOVER = 40  # tokens; less cannot hand anything over
TASK_CHARS = 200


def start_fresh(units: Units, toolbox: Toolbox, limit: int) -> Rewritten:
    """A fresh start asked for by a person, a milestone or repeated over-hits; see ``recover``."""
    return recover(Attempt(units, limit, toolbox.clock()), toolbox)


def recover(attempt: Attempt, toolbox: Toolbox) -> Rewritten:
    """One handover summary of priority 1 in place of all but system prompts, pinned units and the newest user message.

    An exchange of tools that is under way (the newest unit) stays too when it fits.
    """
    attempt = replace(attempt, recovered=True)
    toolbox.report("recovery", total_tokens(attempt.before), attempt.limit)
    kept = _kept(attempt.before, attempt.limit)
    room = attempt.limit - sum(attempt.before[index].est_tokens for index in kept) - ledger_budget(attempt.limit)
    if room < SMALLEST_HANDOVER:
        return fail(attempt, irreducible(attempt.before, attempt.limit), toolbox)
    gone = tuple(unit for index, unit in enumerate(attempt.before) if index not in kept)
    if not gone:
        return fail(attempt, "A fresh start would remove nothing: every unit must stay.", toolbox)
    handover = _handover(attempt.before, gone, min(HANDOVER_TOKENS, room), toolbox)
    rewritten = conclude(attempt, _in_order(attempt.before, kept, handover), toolbox)
    if not rewritten.failure:
        toolbox.report("handover", rewritten.est_after, attempt.limit)
    return rewritten


def _kept(units: Units, limit: int) -> set[int]:
    kept = {i for i, unit in enumerate(units) if unit.role is UnitRole.SYSTEM or unit.pinned}
    kept |= {newest_user(units)} - {-1}
    newest = len(units) - 1
    in_flight = newest >= 0 and units[newest].role is UnitRole.TOOL
    size = sum(units[index].est_tokens for index in kept | {newest}) if in_flight else 0
    return kept | {newest} if in_flight and size <= limit // 2 else kept


def _handover(units: Units, gone: Units, max_tokens: int, toolbox: Toolbox) -> Unit:
    text = "\n".join(part for part in map(told, gone) if part)
    task = " ".join(task_of(units).split())[:TASK_CHARS]
    summary, _ = gated_summary(text, max(max_tokens - TASK_CHARS // 4, SMALLEST_HANDOVER // 2), toolbox)
    words = f"{HANDOVER_OPENING}{summary}{HANDOVER_CLOSING}{task}"
    return replace(stand_in(UnitKind.SUMMARY, words, gone, toolbox, units, "handover-"), priority=1)


def _in_order(units: Units, kept: set[int], handover: Unit) -> Units:
    """System prompts, the handover, and what else is kept in its order."""
    stay = [units[index] for index in sorted(kept)]
    system = [unit for unit in stay if unit.role is UnitRole.SYSTEM]
    return (*system, handover, *(unit for unit in stay if unit.role is not UnitRole.SYSTEM))


def irreducible(units: Units, limit: int) -> str:
    """Why nothing helps, with the sizes."""
    system = sum(unit.est_tokens for unit in units if unit.role is UnitRole.SYSTEM)
    newest = newest_user(units)
    fixed = sum(
        unit.est_tokens
        for index, unit in enumerate(units)
        if unit.role is not UnitRole.SYSTEM and (unit.pinned or index == newest)
    )
    return (
        f"The system prompt (est. {system:,} tokens) and the messages that must stay (est. {fixed:,}) leave no room for a "
        f"summary within {limit:,} tokens. Shorten them, raise the limit or choose a larger model."
    )
