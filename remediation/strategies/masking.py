"""Masking of old tool output, the cheapest loss: a line says how long it was and how to read it again."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Toolbox, Unit, UnitRole, Units, total_tokens
from remediation.strategies.outcome import touchable
from remediation.strategies.stand_ins import text_counter

OPENING = "[Result of "
FRESH_UNITS = 3  # the newest units, which keep their tool output and images, since the agent works with them
SMALLEST_RESULT = 60  # tokens; the line would not be much shorter than a smaller result
LONG_ARGUMENT = 240  # characters; a longer argument of an old call is cut
ARGUMENT_HEAD = 80  # characters of it that stay


def mask_old_output(units: Units, target_tokens: int, toolbox: Toolbox) -> Units:
    """Mask tool results, oldest first, until the units fit into ``target_tokens``."""
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


def _masked_result(message: Message, name: str, unit: Unit, count: Callable[[str], int]) -> Message:
    size = count(message.text)
    if size < SMALLEST_RESULT or message.text.startswith(OPENING):
        return message
    failed = " It failed." if unit.failed else ""
    note = f"{OPENING}{name}, est. {size:,} tokens, no longer shown; {where_it_is(unit.source)}.{failed}]"
    return replace(message, text=note)


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
