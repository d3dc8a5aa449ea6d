"""Cutting of the newest tool results that leave too little room: beginning, end and lines about failures stay."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from dominds.llm.messages import Message, Role
from remediation.context import Toolbox, Unit, UnitRole, Units
from remediation.strategies.masking import (
    FRESH_UNITS,
    SMALLEST_RESULT,
    mask_old_output,
    where_it_is,
    with_messages,
    with_short_arguments,
)
from remediation.strategies.outcome import FAILURE_WORDS, is_ledger, mentions, standing_tokens
from remediation.strategies.stand_ins import text_counter

FRESH_SHARE = 2  # one result may take the room that is left beside what must stay, divided by this
END_SHARE = 4  # a cut result's beginning and its end may each take its room divided by this
PIECE_CHARS = 300  # longer lines are divided into pieces, at a blank or a sign if there is one
MARK_TOKENS = 6  # of the mark that stands where lines are left out
PIECE = re.compile(rf".{{1,{PIECE_CHARS}}}(?:(?<=[\s,;])|$)|.{{{PIECE_CHARS}}}")


def lighten(units: Units, room: int, toolbox: Toolbox, whole: int = 0) -> Units:
    """Cut the newest results, and mask old tool output until the units fit into ``room``.

    The ledger is left out, since each rewrite writes it anew.
    """
    cut = cut_fresh_results(tuple(unit for unit in units if not is_ledger(unit)), room, toolbox, whole)
    return mask_old_output(cut, room, toolbox)


def cut_fresh_results(units: Units, aim: int, toolbox: Toolbox, whole: int = 0) -> Units:
    """Cut long results in the newest units, which masking leaves alone, so that each leaves half of the room to others.

    ``aim`` is the size of all units together. Units of at most ``whole`` tokens, pinned ones and those of priority 1
    stay as they are.
    """
    room = max(SMALLEST_RESULT, (aim - standing_tokens(units)) // FRESH_SHARE)

    def fits(unit: Unit) -> bool:
        is_fixed = unit.role is not UnitRole.TOOL or unit.pinned or unit.priority == 1
        return is_fixed or unit.est_tokens <= max(room, whole)

    fresh = (unit if fits(unit) else _cut(unit, room, toolbox) for unit in units[-FRESH_UNITS:])
    return (*units[:-FRESH_UNITS], *fresh)


def _cut(unit: Unit, room: int, toolbox: Toolbox) -> Unit:
    """Cut the unit's longest results so that the unit fits into ``room`` tokens."""
    count = text_counter(toolbox)
    messages = [with_short_arguments(message) for message in unit.messages]
    sizes = [count(message.text) if message.role is Role.TOOL else 0 for message in messages]
    most = _fair_share(sizes, room - toolbox.count(messages) + sum(sizes))
    return with_messages(unit, [_cut_result(message, most, unit, count) for message in messages], toolbox)


def _fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the size that each result may have so that all fit: what small ones do not use is left to large ones."""
    left, share = room, 0
    waiting = sorted(size for size in sizes if size)
    for place, size in enumerate(waiting):
        share = left // (len(waiting) - place)
        if size > share:
            break
        left -= size
    return max(SMALLEST_RESULT, share)


def _cut_result(message: Message, room: int, unit: Unit, count: Callable[[str], int]) -> Message:
    total = count(message.text)
    if message.role is not Role.TOOL or total <= room:
        return message
    says = (
        f"[Cut, since it has est. {total:,} tokens: its beginning, its end and lines that tell of failures. "
        f"{where_it_is(unit.source)}.]"
    )
    pieces = _pieces(message.text)
    density = total / max(1, len(message.text))  # an estimate, since counting each line would take too long
    chosen = _choose(pieces, [len(piece) * density + 1 for piece in pieces], room - count(says))
    text = f"{says}\n{_join(pieces, chosen)}"
    return replace(message, text=text) if count(text) < total else message


def _pieces(text: str) -> list[str]:
    return [piece for line in text.splitlines() for piece in PIECE.findall(line) or ("",)]


def _choose(pieces: Sequence[str], prices: Sequence[float], room: int) -> set[int]:
    """Return the places of the pieces that stay: beginning and end, then those that tell of a failure, if they fit."""
    chosen: set[int] = set()
    for order in (range(len(pieces)), range(len(pieces) - 1, -1, -1)):
        left = room / END_SHARE
        for place in order:
            left -= prices[place]
            if left < 0:
                break
            chosen.add(place)
    left = room - sum(prices[place] for place in chosen) - 2 * MARK_TOKENS
    for place, piece in enumerate(pieces):
        if prices[place] + MARK_TOKENS <= left and place not in chosen and mentions(piece.lower(), FAILURE_WORDS):
            chosen.add(place)
            left -= prices[place] + MARK_TOKENS
    return chosen


def _join(pieces: Sequence[str], chosen: set[int]) -> str:
    lines: list[str] = []
    last = -1
    for place in (*sorted(chosen), len(pieces)):
        if place > last + 1:
            lines.append(f"[… {place - last - 1:,} lines left out …]")
        lines += pieces[place : place + 1]
        last = place
    return "\n".join(lines)
