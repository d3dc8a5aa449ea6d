"""Laws of every rewrite, whichever policy made it."""

from remediation.context import Unit, Units, total_tokens
from remediation.strategies.outcome import standing


def broken_law(before: Units, after: Units) -> str:
    """Name the first law that the view ``after`` breaks, as the end of a sentence; empty when it breaks none."""
    if total_tokens(after) >= total_tokens(before):
        return f"made nothing smaller: est. {total_tokens(before):,} → {total_tokens(after):,} tokens"
    if len({unit.id for unit in after}) < len(after):
        return "gave one id to two units"
    stay = [(unit.id, unit.messages) for unit in untouchable(before)]
    ids = {unit_id for unit_id, _ in stay}
    if [(unit.id, unit.messages) for unit in after if unit.id in ids] != stay:
        return "took away, changed or moved a system prompt, a pinned unit or the newest user message"
    known = {unit.id: unit.messages for unit in before}
    for unit in after:
        if known.get(unit.id) != unit.messages and not is_paired(unit):
            return f"parted a tool call from its result ({unit.id})"
    return ""


def untouchable(units: Units) -> list[Unit]:
    """Return system prompts, pinned units and the newest user message, which stay word for word and in order."""
    return [units[index] for index in sorted(standing(units))]


def is_paired(unit: Unit) -> bool:
    """Check that every call has its result in the same unit, and every result its call."""
    calls = {call.id for message in unit.messages for call in message.tool_calls}
    results = {message.tool_call_id for message in unit.messages if message.tool_call_id}
    return calls == results
