"""The key-fact ledger as a unit of the view: what a rewrite removes contributes to it, and it follows the summary."""

from typing import NamedTuple

from remediation.budget import most_filled
from remediation.context import Toolbox, UnitKind, UnitRole, Units
from remediation.strategies.masking import values_of_results
from remediation.strategies.outcome import LEDGER_PREFIX, has_calls, is_ledger, text_of
from remediation.strategies.said import Talk, talk_of
from remediation.strategies.stand_ins import stand_in, text_counter
from remediation.text.coverage import Shown
from remediation.text.ledger import facts_of, lines_read_back, render_ledger

LEDGER_SHARE = 10  # the ledger gets at most the limit divided by this
TALK_SHARE, TALK_LEDGER = 0.2, 100  # of its budget, and at least so many tokens: a ledger of nothing but talk
MESSAGE_TOKENS = 10  # of an empty message, rounded up
SMALLEST_LEDGER = 16  # tokens


class Carried(NamedTuple):
    units: Units
    ledger: tuple[str, ...]


def ledger_budget(limit: int) -> int:
    """Return the tokens that the ledger may take, its heading included."""
    return limit // LEDGER_SHARE


def most_of_account(limit: int, beside: int = 0) -> int:
    """Return the tokens that an account of what went may take where the aim leaves it too little to say anything."""
    return most_filled(limit) - ledger_budget(limit) - beside


def ledger_reserve(limit: int, units: Units) -> int:
    """Return the tokens to leave for the ledger beside an account made by rule.

    Where no tool was called, the account itself quotes what was said, and one more sentence there tells more than
    lines cut out of others: the ledger then needs room for rules and failures only.
    """
    budget = ledger_budget(limit)
    return budget if has_calls(units) else max(min(budget, TALK_LEDGER), int(budget * TALK_SHARE))


def ledger_lines(units: Units) -> tuple[str, ...]:
    """Return the facts that the ledgers among ``units`` already carry."""
    lines = (line for unit in units if is_ledger(unit) for line in unit.text.splitlines())
    return tuple(line.removeprefix("- ") for line in lines if line.startswith("- "))


def lost_talk(before: Units, after: Units) -> Talk:
    """Read what was said in the units that ``after`` no longer shows as they were, beside what it shows."""
    return talk_of(removed_from(before, after), after, lines_read_back(ledger_lines(before)))


def carry(
    before: Units, after: Units, talk: Talk, budget_tokens: int, toolbox: Toolbox, for_values: int = 0
) -> Carried:
    """Return ``after`` with one ledger: the facts carried so far and those of ``talk`` that are lost, except what
    still stands. Values of results may take ``for_values`` tokens beside the budget.
    """
    view = tuple(unit for unit in after if not is_ledger(unit))
    room = budget_tokens - MESSAGE_TOKENS
    lost = removed_from(before, view)
    if room < SMALLEST_LEDGER or not lost:
        return Carried(view, ())
    shown = Shown(text_of(view))
    results = tuple(values_of_results(lost, toolbox, shown))
    count, earlier = text_counter(toolbox), ledger_lines(before)
    ledger = facts_of(talk.lost_statements, room, count, earlier, shown.says, results, for_values)
    if not ledger:
        return Carried(view, ())
    unit = stand_in(UnitKind.SUMMARY, render_ledger(ledger), lost, toolbox, view, LEDGER_PREFIX)
    position = _position(view)
    return Carried((*view[:position], unit, *view[position:]), ledger)


def removed_from(before: Units, after: Units) -> Units:
    """Return the units of ``before`` that ``after`` does not show as they were."""
    standing = {(unit.id, unit.messages) for unit in after}
    return tuple(unit for unit in before if (unit.id, unit.messages) not in standing)


def _position(view: Units) -> int:
    """Return the ledger's place: behind the last account, else behind the system prompts."""
    accounts = [index for index, unit in enumerate(view) if unit.kind is UnitKind.SUMMARY]
    if accounts:
        return accounts[-1] + 1
    return next((index for index, unit in enumerate(view) if unit.role is not UnitRole.SYSTEM), len(view))
