"""Cache of the heads of views: turns are never changed, so each read fetches only those since the last."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialogs.context.units import group, is_cut_off
from dialogs.models import Turn
from dominds.llm.messages import Message, Role, are_plain, chars_of
from remediation.context import STAND_INS, Unit, Units

CACHED_CHARS = 40_000_000  # of all heads in this process
_CHARS_PER_UNIT = 1_000  # the memory of the objects around a text, in characters


@dataclass(frozen=True, slots=True)
class Head:
    """A view up to ``position``. ``settled`` are the units that no later turn can change, with their ``messages``.
    ``open_rows`` are the turns behind them: from the first tool call on that lacks a result, or an answer at the end
    that was cut off.
    """

    position: int
    settled: Units
    messages: tuple[Message, ...] = ()
    chars: int = 0  # of the messages
    summary_chars: int = 0  # of these, in units that stand in for others
    result_chars: int = 0  # of these, in tool results
    is_plain: bool = True  # True if all messages are (``are_plain``)
    open_rows: tuple[Any, ...] = ()
    interrupted: bool = False  # the newest turn, apart from cut-off answers, was cut for compaction
    base_position: int = 0  # as in ``View``
    by_value: frozenset[str] = frozenset()

    @classmethod
    def of(cls, position: int, units: Units, **more: Any) -> "Head":
        messages = messages_of(units)
        summary = chars_of(messages_of([unit for unit in units if unit.kind in STAND_INS]))
        results = _of_tools(messages_of([unit for unit in units if unit.kind not in STAND_INS]))
        return cls(position, units, messages, chars_of(messages), summary, results, are_plain(messages), **more)

    @property
    def weight(self) -> int:
        """Return the memory that it takes, in characters."""
        return self.chars + _CHARS_PER_UNIT * len(self.settled)

    def followed_by(self, rows: Sequence[Any]) -> "Head":
        """Return the head with the turns that came since, in order of position."""
        if not rows:
            return self
        rows = (*self.open_rows, *rows)
        settled = count_settled(rows)
        whole = next((row for row in reversed(rows) if not is_cut_off(row)), None)
        units = group(rows[:settled])
        messages = messages_of(units)
        return replace(
            self,
            position=rows[-1].position,
            settled=(*self.settled, *units),
            messages=(*self.messages, *messages),
            chars=self.chars + chars_of(messages),
            result_chars=self.result_chars + _of_tools(messages),
            is_plain=self.is_plain and are_plain(messages),
            open_rows=rows[settled:],
            interrupted=whole.status == Turn.Status.INTERRUPTED if whole else self.interrupted,
        )


def messages_of(units: Sequence[Unit]) -> tuple[Message, ...]:
    return tuple([message for unit in units for message in unit.messages])


def _of_tools(messages: Sequence[Message]) -> int:
    return sum([len(message.text) for message in messages if message.role is Role.TOOL])


def count_settled(rows: Sequence[Any]) -> int:
    """Count the turns from the first on that no later turn can change: all their calls have results, and the last of
    them is no answer that was cut off, which another one may replace.
    """
    settled, waiting = 0, set[str]()
    for place, row in enumerate(rows, 1):
        if row.tool_calls:
            waiting.update(call["id"] for call in row.tool_calls)
        elif row.role == Turn.Role.TOOL:
            waiting.discard(row.tool_call_id)
        if not waiting and not is_cut_off(row):
            settled = place
    return settled
