"""What each process has indexed of dialogs' texts: turns are never changed, so each look reads only those since the last.

An index is in memory alone. After a restart the first look at a dialog reads it whole: 50,000 turns take 3 to 9 s of a
busy core, fewer in proportion (``tests/benchmarks/recall.py``).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from dialogs.errors import UNREADABLE
from dialogs.models import Turn
from dominds.db.prepared import Select
from dominds.weighted_cache import Bounded
from remediation.models import RemovedUnit
from remediation.recall.index import Index
from remediation.recall.passages import Passage, passages_of
from remediation.tokens.counting import count_characters

REMEMBERED_CHARS = 60_000_000  # of all texts that this process has indexed; an index takes about three times its texts
_CHARS_PER_ENTRY = 200  # what the objects around a passage take, in characters of it

Since = Callable[[UUID, int], Sequence[Any]]
PassagesOf = Callable[[Any], Sequence[Passage]]


class _Growing:
    """One dialog's index, and the place of the last row in it. Used by one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.index = Index()
        self.last = 0
        self.weight = 0

    def grow(self, rows: Sequence[Any], passages_of_row: PassagesOf, place: str) -> None:
        found = [passage for row in rows for passage in passages_of_row(row)]
        self.index.add(found)
        self.weight += sum(len(passage.text) + _CHARS_PER_ENTRY for passage in found)
        self.last = getattr(rows[-1], place)


class TextIndex:
    """Indexes of one kind of row. ``since`` reads a dialog's rows after a place in their order; ``place`` is its column."""

    def __init__(self, since: Since, passages_of_row: PassagesOf, place: str) -> None:
        self._since, self._passages_of_row, self._place = since, passages_of_row, place
        self._known = Bounded[_Growing](REMEMBERED_CHARS)
        self._finding = threading.Lock()

    @contextmanager
    def of(self, dialog_id: UUID) -> Iterator[Index]:
        """The index with every row that there is now; only for this thread, until the block ends."""
        growing = self._growing(dialog_id)
        with growing.lock:
            if rows := self._since(dialog_id, growing.last):
                growing.grow(rows, self._passages_of_row, self._place)
                self._keep(dialog_id, growing)
            yield growing.index

    def _growing(self, dialog_id: UUID) -> _Growing:
        if connection.in_atomic_block:  # what a transaction under way reads may be rolled back
            return _Growing()
        with self._finding:
            return self._known.get(dialog_id) or self._keep(dialog_id, _Growing())

    def _keep(self, dialog_id: UUID, growing: _Growing) -> _Growing:
        """Also one that is larger than all of them together may be: it would be made anew for each message."""
        if not connection.in_atomic_block:
            self._known.put(dialog_id, growing, min(growing.weight, REMEMBERED_CHARS))
        return growing


def passages_of_turn(row: Any) -> tuple[Passage, ...]:
    """``row`` has the columns of ``TURN_COLUMNS``."""
    try:
        calls = [f"{call['name']}({call['arguments']})" for call in row.tool_calls or ()]
    except UNREADABLE:  # a damaged turn, maybe of an older round: it keeps neither from answering nor from being found
        calls = []
    text = "\n".join(part for part in (row.text, *calls) if part)
    return passages_of(row.seq, row.tool_name or row.role, text, count_characters)


TURN_COLUMNS = ("seq", "role", "text", "tool_calls", "tool_name")


def said(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Those that have a place in the conversation, without the runtime's notices, in its order."""
    return turns.filter(position__isnull=False).exclude(role=Turn.Role.NOTICE).order_by("position")


def _turns_since(dialog_id: UUID, position: int) -> QuerySet[Turn, Any]:
    turns = said(Turn.objects.filter(dialog_id=dialog_id, position__gt=position))
    return turns.values_list(*TURN_COLUMNS, "position", named=True)


def _removed_since(dialog_id: UUID, pk: int) -> QuerySet[RemovedUnit, Any]:
    units = RemovedUnit.objects.filter(dialog_id=dialog_id, pk__gt=pk).order_by("pk")
    return units.values_list("pk", "kind", "text", named=True)


def _passages_of_unit(row: Any) -> tuple[Passage, ...]:
    return passages_of(row.pk, row.kind, row.text, count_characters)


TURNS = TextIndex(Select(_turns_since), passages_of_turn, "position")
REMOVED_UNITS = TextIndex(Select(_removed_since), _passages_of_unit, "pk")
