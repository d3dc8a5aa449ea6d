"""The key-fact ledger as a unit of the view. Each rewrite writes it anew, with facts of what was removed so far."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from dominds.llm.messages import Role
from remediation.budget import most_filled
from remediation.context import Toolbox, UnitKind, UnitRole, Units
from remediation.strategies.masking import OPENING
from remediation.strategies.outcome import LEDGER_PREFIX, has_calls, is_ledger, text_of
from remediation.strategies.said import Talk, talk_of
from remediation.strategies.stand_ins import stand_in, text_counter
from remediation.text.coverage import Shown
from remediation.text.ledger import Result, facts_of, lines_read_back, render_ledger
from remediation.text.listing import arguments_in_short, listing
from remediation.text.marks import disarm

LEDGER_SHARE = 10  # the ledger may take the limit divided by this
# Where no tool was called, an account by rule leaves it the first, a share of that, but at least the second, in tokens.
TALK_SHARE, TALK_LEDGER = 0.2, 100
MESSAGE_TOKENS = 10  # of an empty message, rounded up
SMALLEST_LEDGER = 16  # tokens; a smaller one has no room for a fact


class Carried(NamedTuple):
    """A view with its ledger, and the ledger's lines."""

    units: Units
    ledger: tuple[str, ...]


def ledger_budget(limit: int) -> int:
    """Return the tokens that the ledger may take, its heading included."""
    return limit // LEDGER_SHARE


def most_of_account(limit: int, beside: int = 0) -> int:
    """Return the tokens that a model's good account may take even if it misses the aim, ``beside`` what stays."""
    return most_filled(limit) - ledger_budget(limit) - beside


def ledger_reserve(limit: int, units: Units) -> int:
    """Return the tokens that an account by rule leaves for the ledger.

    If no tool was called, the account quotes what was said, and another sentence of its own tells more than a line of
    the ledger, which stands without its text. The ledger then needs room for little but rules.
    """
    budget = ledger_budget(limit)
    return budget if has_calls(units) else max(min(budget, TALK_LEDGER), int(budget * TALK_SHARE))


def ledger_lines(units: Units) -> tuple[str, ...]:
    """Return the facts that the ledgers among ``units`` already carry."""
    lines = (line for unit in units if is_ledger(unit) for line in unit.text.splitlines())
    return tuple(line.removeprefix("- ") for line in lines if line.startswith("- "))


def lost_talk(before: Units, after: Units) -> Talk:
    """Read what was said in units that ``after`` no longer shows as they were, beside what it shows and the ledger."""
    return talk_of(removed_from(before, after), after, lines_read_back(ledger_lines(before)))


def carry(
    before: Units, after: Units, talk: Talk, budget_tokens: int, toolbox: Toolbox, for_values: int = 0
) -> Carried:
    """Return ``after`` with one ledger, of facts from the ledger before it and from ``talk`` that ``after`` lacks.

    Values of tools' results may take ``for_values`` tokens in addition to the budget.
    """
    view = tuple(unit for unit in after if not is_ledger(unit))
    room = budget_tokens - MESSAGE_TOKENS
    lost = removed_from(before, view)
    if room < SMALLEST_LEDGER or not lost:
        return Carried(view, ())
    shown = Shown(text_of(view))
    results = tuple(_results_in(lost, toolbox, shown))
    count, earlier = text_counter(toolbox), ledger_lines(before)
    ledger = facts_of(talk.lost_statements, room, count, earlier, shown.says, results, for_values)
    if not ledger:
        return Carried(view, ())
    unit = stand_in(UnitKind.SUMMARY, render_ledger(ledger), lost, toolbox, view, LEDGER_PREFIX)
    position = _position(view)
    return Carried((*view[:position], unit, *view[position:]), ledger)


def _results_in(units: Units, toolbox: Toolbox, known: Shown) -> Iterator[Result]:
    """Yield the tools' results among ``units``, each with a function that lists its values which are not ``known``.

    Results of code have none. Those of masked results are in the ledger since they were masked.
    """
    count = text_counter(toolbox)
    for unit in units:
        calls = {call.id: call for message in unit.messages for call in message.tool_calls}
        for message in unit.messages:
            if message.role is not Role.TOOL or unit.kind is UnitKind.CODE or message.text.startswith(OPENING):
                continue
            call = calls.get(message.tool_call_id)
            heading = f"{call.name}({disarm(arguments_in_short(call.arguments))})" if call else "a tool()"
            values = partial(listing, message.text, count=count, known=known)
            yield Result((unit.source or (0,))[-1], heading, values)


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
