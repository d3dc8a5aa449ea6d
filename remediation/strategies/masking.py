"""Masking of old tool output, the cheapest loss: a line says how long it was and how to read it again."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Toolbox, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.strategies.outcome import has_calls, standing, touchable
from remediation.strategies.stand_ins import text_counter
from remediation.text.coverage import Shown
from remediation.text.ledger import Result
from remediation.text.listing import arguments_in_short, listing
from remediation.text.marks import disarm

OPENING = "[Result of "
LEFT_OUT = "[Left out of this one request, to make room.]"
LEFT_OUT_MESSAGES = "[Earlier messages are left out of this one request, to make room.]"
FRESH_UNITS = 3  # the newest units, which keep their tool output and images, since the agent works with them
SMALLEST_RESULT = 60  # tokens; the line would not be much shorter than a smaller result
LONG_ARGUMENT = 240  # characters; a longer argument of an old call is cut
ARGUMENT_HEAD = 80  # characters of it that stay


def mask_old_output(units: Units, target_tokens: int, toolbox: Toolbox) -> Units:
    """Mask tool results, oldest first, until the units fit into ``target_tokens``."""
    if not has_calls(units):
        return units
    return shorten_oldest(units, target_tokens, lambda unit: mask(unit, toolbox))


def shorten_oldest(units: Units, target_tokens: int, shorten: Callable[[Unit], Unit]) -> Units:
    """Shorten units, oldest first, until all fit into ``target_tokens``. The newest FRESH_UNITS stay."""
    old = [index for index in touchable(units) if index < len(units) - FRESH_UNITS]
    return shorten_in(old, units, target_tokens, shorten)


def shorten_in(order: Sequence[int], units: Units, target_tokens: int, shorten: Callable[[Unit], Unit]) -> Units:
    """Shorten the units at these indices, in this order, until all units fit into ``target_tokens``."""
    result, excess = list(units), total_tokens(units) - target_tokens
    for index in order:
        if excess <= 0:
            break
        result[index] = shorten(units[index])
        excess -= units[index].est_tokens - result[index].est_tokens
    return tuple(result)


def mask(unit: Unit, toolbox: Toolbox) -> Unit:
    """Return the unit with masked results and short arguments, or as it was if that gains nothing."""
    if unit.role is not UnitRole.TOOL:
        return unit
    count = text_counter(toolbox)
    names = {call.id: call.name for message in unit.messages for call in message.tool_calls}

    def masked(message: Message) -> Message:
        if message.role is not Role.TOOL:
            return with_short_arguments(message)
        return _masked_result(message, names.get(message.tool_call_id, "a tool"), unit, count)

    return with_messages(unit, map(masked, unit.messages), toolbox)


def with_messages(unit: Unit, messages: Iterable[Message], toolbox: Toolbox) -> Unit:
    """Return the unit with other messages, or as it was if they take no fewer tokens."""
    other = tuple(messages)
    return min(unit, replace(unit, messages=other, est_tokens=toolbox.count(other)), key=attrgetter("est_tokens"))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What one request leaves out of a view, by the indices of its units: only the ``results``, or whole ``units``.

    ``messages`` is the number of messages that the whole view has.
    """

    results: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    messages: int = 0


ALL_SHOWN = LeftOut()


def to_leave_out(units: Units, counted: Units, excess: int, count: Callable[[Sequence[Message]], int]) -> LeftOut:
    """Choose what one request leaves out so that it is ``excess`` tokens smaller. ``counted`` has the units' sizes.

    The results of old calls go first, then the oldest units, then the same of the newest FRESH_UNITS. System prompts,
    pinned units and the newest message stay. Only if all else does not suffice, people's messages among these go; they
    are there again in the next request.
    """
    stays, results, gone = standing(units), set[int](), set[int]()
    sizes = {index: unit.est_tokens for index, unit in enumerate(counted) if index not in stays}
    if excess > sum(sizes.values()):
        gone = {index for index in stays if units[index].role is UnitRole.USER and units[index].source}
        excess -= total_tokens([counted[index] for index in gone])
    newest = len(units) - FRESH_UNITS
    for part in ([index for index in sizes if index < newest], [index for index in sizes if index >= newest]):
        for index in part:
            if excess > 0 and units[index].role is UnitRole.TOOL:
                size = count(_without_results(units[index]).messages)
                excess -= sizes[index] - size
                sizes[index] = size
                results.add(index)
        for index in part:
            if excess > 0:
                gone.add(index)
                excess -= sizes[index]
    if not results and not gone:
        return ALL_SHOWN
    return LeftOut(tuple(sorted(results)), tuple(sorted(gone)), sum(len(unit.messages) for unit in units))


def without(units: Units, left_out: LeftOut) -> Units:
    """Return the units of one request, with marks in place of what it leaves out."""
    results, gone = frozenset(left_out.results), frozenset(left_out.units)
    kept = list[Unit]()
    for index, unit in enumerate(units):
        if index not in gone:
            kept.append(_without_results(unit) if index in results else unit)
        elif index == left_out.units[0]:
            mark = (Message(Role.USER, LEFT_OUT_MESSAGES),)
            kept.append(replace(unit, role=UnitRole.USER, messages=mark, pinned=False))
    return tuple(kept)


def _without_results(unit: Unit) -> Unit:
    messages = (
        replace(message, text=LEFT_OUT) if message.role is Role.TOOL else with_short_arguments(message)
        for message in unit.messages
    )
    return replace(unit, messages=tuple(messages))


def _masked_result(message: Message, name: str, unit: Unit, count: Callable[[str], int]) -> Message:
    size = count(message.text)
    if size < SMALLEST_RESULT or message.text.startswith(OPENING):
        return message
    failed = " It failed." if unit.failed else ""
    note = f"{OPENING}{name}, est. {size:,} tokens, no longer shown; {where_it_is(unit.source)}.{failed}]"
    return replace(message, text=note)


def values_of_results(units: Units, toolbox: Toolbox, known: Shown) -> Iterator[Result]:
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
            values = partial(listing, message.text, count=count, known=known)
            yield Result((unit.source or (0,))[-1], _heading(call) if call else "a tool()", values)


def _heading(call: ToolCall) -> str:
    """Return a call in short, such as `search_flight(JFK, SEA)`."""
    return f"{call.name}({disarm(arguments_in_short(call.arguments))})"


def where_it_is(source: Sequence[int]) -> str:
    """Tell the agent which tools show it the text of these turns."""
    if not source:
        return "search_archive finds it"
    return f"search_archive and read_archive show it (turn {source[-1]})"


def with_short_arguments(message: Message) -> Message:
    """Return a call with the long texts in its arguments cut. If any was, the reasoning before the call goes too."""
    calls = tuple(_short_call(call) for call in message.tool_calls)
    return replace(message, tool_calls=calls, provider_items=()) if calls != message.tool_calls else message


def _short_call(call: ToolCall) -> ToolCall:
    if len(call.arguments) <= LONG_ARGUMENT:
        return call
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    return replace(call, arguments=json.dumps(_short(arguments), ensure_ascii=False))


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG_ARGUMENT:
        return f"{value[:ARGUMENT_HEAD]}… [{len(value):,} characters, no longer shown]"
    if isinstance(value, dict):
        return {name: _short(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner) for inner in value]
    return value
