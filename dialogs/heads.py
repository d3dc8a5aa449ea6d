"""The heads of views that this process has read: turns are never changed, so each look reads only those since the last."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialogs.models import Turn
from dialogs.units import group
from remediation.context import Unit, Units

REMEMBERED_CHARS = 40_000_000  # of all heads of this process
_CHARS_PER_UNIT = 1_000  # what the objects around a text take, in characters of it


@dataclass(frozen=True, slots=True)
class Head:
    """A view up to ``position``. ``settled`` are the units that no later turn can change; ``open_rows`` are the turns from
    the first tool call on that still lacks a result."""

    position: int
    settled: Units
    open_rows: tuple[Any, ...] = ()
    interrupted: bool = False  # the newest turn is an answer that was cut for compaction
    base_position: int = 0  # as in a view
    by_value: frozenset[str] = frozenset()
    weight: int = 0  # characters

    @property
    def units(self) -> Units:
        return (*self.settled, *group(self.open_rows)) if self.open_rows else self.settled

    def followed_by(self, rows: Sequence[Any]) -> "Head":
        """The head with the turns that came since, in order of position."""
        if not rows:
            return self
        rows = (*self.open_rows, *rows)
        settled = _settled(rows)
        units = group(rows[:settled])
        return replace(
            self,
            position=rows[-1].position,
            settled=(*self.settled, *units),
            open_rows=rows[settled:],
            interrupted=rows[-1].status == Turn.Status.INTERRUPTED,
            weight=self.weight + weight_of(units),
        )


def weight_of(units: Sequence[Unit]) -> int:
    return sum([len(unit.text) + _CHARS_PER_UNIT for unit in units])


def _settled(rows: Sequence[Any]) -> int:
    """How many turns from the first on hold the results of all their calls."""
    settled, waiting = 0, set[str]()
    for place, row in enumerate(rows, 1):
        if row.tool_calls:
            waiting.update(call["id"] for call in row.tool_calls)
        elif row.role == Turn.Role.TOOL:
            waiting.discard(row.tool_call_id)
        if not waiting:
            settled = place
    return settled
