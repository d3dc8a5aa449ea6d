"""The common end of all rewrites: short answers, marks, the ledger, and the check that enough was gained."""

from dataclasses import dataclass, replace

from remediation.budget import LEAST_GAIN
from remediation.context import STAND_INS, Rewritten, StrategyStep, Toolbox, UnitKind, UnitRole, Units, total_tokens
from remediation.strategies.carrying import carry, ledger_budget, ledger_reserve, lost_talk, removed_from
from remediation.strategies.exchanges import with_answers
from remediation.strategies.outcome import first_user, is_ledger, standing_tokens, touchable
from remediation.strategies.said import Talk, find_superseded
from remediation.text.marks import BY_RULE


@dataclass(frozen=True, slots=True)
class Attempt:
    """A rewrite under way. Sizes are tokens of units."""

    before: Units
    limit: int
    started_at: float  # milliseconds, by the toolbox's clock
    steps: tuple[StrategyStep, ...] = ()
    recovered: bool = False  # it starts afresh or truncates, for which it need not gain tokens
    target: int | None = None  # a rewrite that reaches it is never refused for its small gain

    @property
    def aim(self) -> int:
        """Return the tokens that the view should have: the target, or half of the limit if there is none."""
        return min(self.limit, self.target or self.limit // 2)


def conclude(attempt: Attempt, after: Units, toolbox: Toolbox) -> Rewritten:
    """Complete the view by short answers, marks and a ledger, and return the outcome, a failure if it gains little."""
    answered = with_answers(attempt.before, after, toolbox)
    if total_tokens(answered) <= attempt.limit or total_tokens(after) > attempt.limit:
        after = answered  # short answers are left out if only they exceed the limit
    talk = lost_talk(attempt.before, after)
    after = _with_marks(after, talk, toolbox)
    size = sum(unit.est_tokens for unit in after if not is_ledger(unit))
    summary = _summary_of(after, attempt.before)
    budget = ledger_reserve(attempt.limit, attempt.before) if BY_RULE in summary else ledger_budget(attempt.limit)
    room = max(0, min(budget, attempt.limit - size))
    spare = attempt.aim - size - room
    carried = carry(attempt.before, after, talk, room, toolbox, for_values=max(0, min(room, spare)))
    est_before, est_after = total_tokens(attempt.before), total_tokens(carried.units)
    if est_after >= est_before:
        return fail(attempt, f"The rewrite would not be smaller: est. {est_before:,} → {est_after:,} tokens.", toolbox)
    reached = attempt.target is not None and est_after <= attempt.target
    is_forced = est_before > attempt.limit  # nothing can be sent without the rewrite, so any gain will do
    must_gain = not (reached or attempt.recovered or is_forced)
    if must_gain and est_before - est_after < est_before * LEAST_GAIN:
        says = f"est. {est_before:,} → {est_after:,} tokens, less than a tenth."
        return fail(attempt, f"The rewrite would gain too little to be worth what it loses: {says}", toolbox)
    return replace(outcome_of(attempt, carried.units, toolbox), summary=summary, ledger=carried.ledger)


def outcome_of(attempt: Attempt, units: Units, toolbox: Toolbox) -> Rewritten:
    """Return the outcome of a rewrite that leaves these units, without a summary or a ledger."""
    return Rewritten(
        units=units,
        removed=removed_from(attempt.before, units),
        est_before=total_tokens(attempt.before),
        est_after=total_tokens(units),
        steps=attempt.steps,
        recovered=attempt.recovered,
        millis=toolbox.clock() - attempt.started_at,
    )


def _with_marks(units: Units, talk: Talk, toolbox: Toolbox) -> Units:
    """Mark what a newer message supersedes, in the units that may be changed.

    The message that the dialog began with is the task, and stays as it was written.
    """
    gone = find_superseded(talk)
    first = first_user(units)
    if any(unit.kind in STAND_INS for unit in units[: max(0, first)]):
        first = -1  # the dialog began earlier, with what these stand for
    view = list(units)
    for place in touchable(units) if gone else ():
        unit = units[place]
        if place != first and unit.id in gone and len(unit.messages) == 1:
            view[place] = unit.with_text(gone[unit.id], toolbox.count)
    return tuple(view)


def fail(attempt: Attempt, failure: str, toolbox: Toolbox) -> Rewritten:
    """Return an outcome that changes nothing. ``failure`` says why."""
    return replace(outcome_of(attempt, attempt.before, toolbox), failure=failure)


def irreducible(units: Units, limit: int) -> str:
    """Explain why no rewrite can help, with the sizes of what must stay."""
    system = sum(unit.est_tokens for unit in units if unit.role is UnitRole.SYSTEM)
    fixed = standing_tokens(units) - system
    first = f"The system prompt (est. {system:,} tokens) and the" if system else "The"
    return (
        f"{first} messages that must stay (est. {fixed:,} tokens) leave no room for a "
        f"summary within the {limit:,} tokens for messages. Shorten them, raise the limit or choose a larger model."
    )


def _summary_of(after: Units, before: Units) -> str:
    """Return the text of the last summary in the view that this rewrite wrote, or an empty string."""
    known = {unit.id for unit in before}
    written = [unit for unit in after if unit.kind is UnitKind.SUMMARY and unit.id not in known and not is_ledger(unit)]
    return written[-1].text if written else ""
