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
    """The rewrite's outcome, with the ledger in its place.

    Coherence is the similarity of the whole text before to the whole text after, as ``toolbox`` measures it.
    """
    carried = carry(attempt.before, after, _ledger_room(attempt, after), toolbox)
    est_before, est_after = total_tokens(attempt.before), total_tokens(carried.units)
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


def _ledger_room(attempt: Attempt, after: Units) -> int:
    """Tokens for the ledger: its share of the limit, where ``after`` leaves that much.

    Beside what an earlier ledger took it may use half of what was saved, so that the rewrite stays one.
    """
    earlier = sum(unit.est_tokens for unit in attempt.before if is_ledger(unit))
    size = sum(unit.est_tokens for unit in after if not is_ledger(unit))
    saved = total_tokens(attempt.before) - earlier - size
    return max(0, min(ledger_budget(attempt.limit), attempt.limit - size, earlier + saved // 2))


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
