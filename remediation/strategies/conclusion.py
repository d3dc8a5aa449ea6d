"""How every rewrite ends: ledger, coherence, and the rule that it must have become smaller (R10, R15)."""

from dataclasses import dataclass

from remediation.context import Rewritten, StrategyStep, Toolbox, UnitKind, Units, total_tokens
from remediation.strategies.carrying import carry, ledger_budget, removed_from
from remediation.strategies.outcome import is_ledger, text_of


@dataclass(frozen=True, slots=True)
class Attempt:
    """A rewrite under way: what it began with, within which limit in tokens, when (``clock`` milliseconds), and its steps."""

    before: Units
    limit: int
    started_at: float
    steps: tuple[StrategyStep, ...] = ()
    recovered: bool = False


def conclude(attempt: Attempt, after: Units, toolbox: Toolbox) -> Rewritten:
    """The rewrite's outcome. The ledger gets its share of the limit, or what room ``after`` leaves of it, and at most half
    of what was saved.

    Coherence is the similarity of the whole text before to the whole text after, as ``toolbox`` measures it.
    """
    est_before, room_left = total_tokens(attempt.before), attempt.limit - total_tokens(after)
    saved = est_before - total_tokens(after)
    room = min(ledger_budget(attempt.limit), room_left, saved // 2)
    carried = carry(attempt.before, after, max(room, 0), toolbox)
    est_after = total_tokens(carried.units)
    if est_after >= est_before:
        return fail(attempt, f"The rewrite would not be smaller: est. {est_before:,} → {est_after:,} tokens.", toolbox)
    return Rewritten(
        units=carried.units,
        removed=removed_from(attempt.before, carried.units),
        est_before=est_before,
        est_after=est_after,
        steps=attempt.steps,
        summary=_summary_of(carried.units, attempt.before),
        ledger=carried.ledger,
        recovered=attempt.recovered,
        coherence=toolbox.similarity(text_of(attempt.before), text_of(carried.units)),
        millis=toolbox.clock() - attempt.started_at,
    )


def fail(attempt: Attempt, failure: str, toolbox: Toolbox) -> Rewritten:
    """The units as they were, and why they must stay so."""
    size = total_tokens(attempt.before)
    return Rewritten(
        units=attempt.before,
        removed=(),
        est_before=size,
        est_after=size,
        steps=attempt.steps,
        recovered=attempt.recovered,
        millis=toolbox.clock() - attempt.started_at,
        failure=failure,
    )


def _summary_of(after: Units, before: Units) -> str:
    """The newest summary that this rewrite wrote."""
    known = {unit.id for unit in before}
    written = [unit for unit in after if unit.kind is UnitKind.SUMMARY and unit.id not in known and not is_ledger(unit)]
    return written[-1].text if written else ""
