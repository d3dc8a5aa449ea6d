"""An in-memory index of each dialog's words. Turns are never changed, so each read fetches only those since the
last.

After a restart the first look at a dialog reads it whole: 50,000 turns take 3 to 9 s of a busy core, fewer in
proportion (``tests/benchmarks/recall.py``). Nobody waits for that: until a thread has done it, a message has an index
of the newest turns only, and a search has the database look for its words.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, connections
from django.db.models import QuerySet

from dialogs.errors import UNREADABLE
from dialogs.models import Turn
from dominds.db.prepared import Select
from dominds.weighted_cache import Bounded
from remediation.models import RemovedUnit
from remediation.recall.index import Index
from remediation.recall.meaning import Bytes
from remediation.recall.passages import Passage, passages_of
from remediation.tokens.counting import count_characters

log = structlog.get_logger(__name__)

CACHED_CHARS = 60_000_000  # of all texts in this process's indexes; an index takes about three times its texts
_CHARS_PER_ENTRY = 200  # the memory of the objects around a passage, in characters
_BYTES_PER_CHARACTER = 3  # that a character of a text takes in an index
AT_ONCE_CHARS = 400_000  # that a message or a search may wait to be indexed: a tenth of a second of a core
AT_ONCE_ROWS = 2_000  # of those texts

Since = Callable[[UUID, int], Sequence[Any]]
PassagesOf = Callable[[Any], Sequence[Passage]]


class _Growing:
    """One dialog's index, and the place of the last row in it. Used by one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.index = Index()
        self.last = 0
        self.weight = 0
        self.is_followed = False  # a thread is adding rows that nobody waits for

    def grow(self, rows: Sequence[Any], passages_of_row: PassagesOf, place: str) -> None:
        passages = [passage for row in rows for passage in passages_of_row(row)]
        self.index.add(passages)
        self.weight += sum(len(passage.text) + _CHARS_PER_ENTRY for passage in passages)
        self.last = getattr(rows[-1], place)


class TextIndex:
    """Indexes of one kind of row. ``since`` reads a dialog's rows after a place in their order, ``newest`` the newest
    of them, newest first. ``place`` is the column of that order.
    """

    def __init__(self, since: Since, newest: Since, passages_of_row: PassagesOf, place: str) -> None:
        self._since, self._newest, self._passages_of_row, self._place = since, newest, passages_of_row, place
        self._known = Bounded[_Growing](CACHED_CHARS)
        self._finding = threading.Lock()

    @contextmanager
    def of(self, dialog_id: UUID) -> Iterator[Index]:
        """The index with every row that there is now; only for this thread, until the block ends."""
        growing = self._index_of(dialog_id)
        with growing.lock:
            self._grow(dialog_id, growing, self._since(dialog_id, growing.last))
            yield growing.index

    @contextmanager
    def unless_cold(self, dialog_id: UUID) -> Iterator[Index | None]:
        """The index as by ``of``, or None while a thread still has to make much of it. Call it outside transactions."""
        with self._unless_cold(dialog_id) as (index, _):
            yield index

    @contextmanager
    def _unless_cold(self, dialog_id: UUID) -> Iterator[tuple[Index | None, Sequence[Any]]]:
        """Yield the index, or None, and the newest rows that it did not have, newest first."""
        growing = self._index_of(dialog_id)
        newest = self._newest(dialog_id, growing.last)
        if len(newest) < AT_ONCE_ROWS and sum(map(self._chars_of, newest)) <= AT_ONCE_CHARS:
            with growing.lock:
                self._grow(dialog_id, growing, newest[::-1])
                yield growing.index, newest
        else:
            self._follow(dialog_id, growing)
            yield None, newest

    def is_being_made(self, dialog_id: UUID) -> bool:
        growing = self._known.get(dialog_id)
        return growing is not None and growing.is_followed

    def _chars_of(self, row: Any) -> int:
        return len(row.text)

    def _grow(self, dialog_id: UUID, growing: _Growing, rows: Sequence[Any]) -> None:
        if new := [row for row in rows if getattr(row, self._place) > growing.last]:
            growing.grow(new, self._passages_of_row, self._place)
            self._keep(dialog_id, growing)

    def _index_of(self, dialog_id: UUID) -> _Growing:
        if connection.in_atomic_block:  # what a transaction under way reads may be rolled back
            return _Growing()
        with self._finding:
            return self._known.get(dialog_id) or self._keep(dialog_id, _Growing())

    def _keep(self, dialog_id: UUID, growing: _Growing) -> _Growing:
        """Cache an index, even if it alone exceeds the cache's bound: else it would be made again for each message."""
        if not connection.in_atomic_block:
            self._known.put(dialog_id, growing, min(growing.weight, CACHED_CHARS))
        return growing

    def _follow(self, dialog_id: UUID, growing: _Growing) -> None:
        with self._finding:
            if growing.is_followed:
                return
            growing.is_followed = True
        # Nobody waits for the thread to end: neither the next message nor a process that ends.
        threading.Thread(target=self._take_in, args=(dialog_id, growing), name="text-index", daemon=True).start()

    def _take_in(self, dialog_id: UUID, growing: _Growing) -> None:
        try:
            with _one_at_a_time, growing.lock:
                self._grow(dialog_id, growing, self._since(dialog_id, growing.last))
        except Exception:  # the next message or search tries again
            log.exception("indexing_failed", dialog_id=str(dialog_id))
        finally:
            growing.is_followed = False
            connections.close_all()


_one_at_a_time = threading.Lock()


class TurnIndex(TextIndex):
    def texts_of(self, dialog_id: UUID, seqs: Sequence[int]) -> dict[int, list[str]]:
        """Return the passages of these turns, as far as the index has them, without a look at the database."""
        growing = self._known.get(dialog_id)
        if growing is None:
            return {}
        with growing.lock:
            index = growing.index
            texts = {
                seq: [passage.text for passage in index.passages(index.entries_of([seq]).tolist())] for seq in seqs
            }
        return {seq: parts for seq, parts in texts.items() if parts}

    def give_meaning(self, dialog_id: UUID, vectors: Mapping[int, Bytes]) -> None:
        """Take in the vectors of turns."""
        growing = self._known.get(dialog_id)
        if growing is None:
            return
        with growing.lock:
            for seq, rows in vectors.items():
                growing.index.give_meaning(seq, rows)
                growing.weight += rows.size // _BYTES_PER_CHARACTER
            self._keep(dialog_id, growing)

    @contextmanager
    def at_once(self, dialog_id: UUID, in_sight: Collection[int], pinned: Collection[int]) -> Iterator[Index]:
        """The index with every turn. While a thread still has to make much of it: an index of the newest turns that are
        not ``in_sight``, and of those that are ``pinned``. Call it outside of transactions.
        """
        with self._unless_cold(dialog_id) as (index, newest):
            if index is not None:
                yield index
                return
        rows = _out_of_sight(newest, in_sight)
        missing = set(pinned) - {row.seq for row in rows}
        if missing:
            rows += _columns(Turn.objects.filter(dialog_id=dialog_id, seq__in=missing))
        rows.sort(key=lambda row: row.position)
        yield Index(passage for row in rows for passage in self._passages_of_row(row))

    def _chars_of(self, row: Any) -> int:
        return len(_text_of(row))


def _out_of_sight(newest: Sequence[Any], in_sight: Collection[int]) -> list[Any]:
    """Take as many rows, newest first, as a message may wait for, without texts that are in sight."""
    shown = {_text_of(row) for row in newest if row.seq in in_sight}
    rows, room = [], AT_ONCE_CHARS
    for row in newest:
        text = _text_of(row)
        if text in shown:
            continue
        room -= len(text)
        if room < 0:
            break
        rows.append(row)
    return rows


def _text_of(row: Any) -> str:
    try:
        calls = [f"{call['name']}({call['arguments']})" for call in row.tool_calls or ()]
    except UNREADABLE:  # a damaged turn, perhaps of an older round, must prevent neither answers nor searches
        calls = []
    return "\n".join(part for part in (row.text, *calls) if part)


def passages_of_turn(row: Any) -> tuple[Passage, ...]:
    """Split a row with ``TURN_COLUMNS`` into passages."""
    return passages_of(row.seq, row.tool_name or row.role, _text_of(row), count_characters)


TURN_COLUMNS = ("seq", "role", "text", "tool_calls", "tool_name")
UNIT_COLUMNS = ("pk", "kind", "text")


def searchable(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Return turns with a place in the conversation, in its order, without the runtime's notices."""
    return turns.filter(position__isnull=False).exclude(role=Turn.Role.NOTICE).order_by("position")


def _columns(turns: QuerySet[Turn]) -> QuerySet[Turn, Any]:
    return searchable(turns).values_list(*TURN_COLUMNS, "position", named=True)


def _turns_since(dialog_id: UUID, position: int) -> QuerySet[Turn, Any]:
    return _columns(Turn.objects.filter(dialog_id=dialog_id, position__gt=position))


def _newest_turns(dialog_id: UUID, position: int) -> QuerySet[Turn, Any]:
    return _turns_since(dialog_id, position).order_by("-position")[:AT_ONCE_ROWS]


def _removed_since(dialog_id: UUID, pk: int) -> QuerySet[RemovedUnit, Any]:
    units = RemovedUnit.objects.filter(dialog_id=dialog_id, pk__gt=pk).order_by("pk")
    return units.values_list(*UNIT_COLUMNS, named=True)


def _newest_removed(dialog_id: UUID, pk: int) -> QuerySet[RemovedUnit, Any]:
    return _removed_since(dialog_id, pk).order_by("-pk")[:AT_ONCE_ROWS]


def passages_of_unit(row: Any) -> tuple[Passage, ...]:
    """Split a row with ``UNIT_COLUMNS`` into passages."""
    return passages_of(row.pk, row.kind, row.text, count_characters)


TURNS = TurnIndex(Select(_turns_since), Select(_newest_turns), passages_of_turn, "position")
REMOVED_UNITS = TextIndex(Select(_removed_since), Select(_newest_removed), passages_of_unit, "pk")
