"""Durable events: numbered per dialog without gaps, in the transaction that made them happen."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from dialogs import representation
from dialogs.models import Dialog, Event, Turn
from dialogs.poke import poke_dialog
from dominds import statements
from dominds.statements import Select

Draft = tuple[str, dict[str, Any]]  # type and data
FEW = 3  # turns that one statement each, made long ago, reads faster than one made for them


def store(dialog: Dialog, first: int, drafts: Sequence[Draft]) -> None:
    """Store events from number ``first`` on, and poke the browsers after commit. The caller holds the dialog's row."""
    if not drafts:
        return
    statements.insert(
        *(Event(dialog=dialog, seq=first + offset, type=kind, data=data) for offset, (kind, data) in enumerate(drafts))
    )
    poke_dialog(dialog.pk, first + len(drafts) - 1)


def after(dialog_id: UUID, seq: int, limit: int = 1000) -> list[dict[str, Any]]:
    """The events after ``seq`` as the page and the API receive them, oldest first."""
    return hydrated(*read(dialog_id, seq, limit))


def read(dialog_id: UUID, seq: int, limit: int) -> tuple[list[Event], dict[int, Turn]]:
    """The next events, and by ``seq`` the turns that they tell of: a ``turn`` event stores no more than that number."""
    rows = _after(limit)(dialog_id, seq)
    seqs = {row.data["turn"] for row in rows if row.type == "turn"}
    if len(seqs) > FEW:
        turns: Iterable[Turn] = _turns(dialog_id).filter(seq__in=seqs)
    else:
        turns = [turn for number in seqs for turn in _TURN(dialog_id, number)]
    return rows, {turn.seq: turn for turn in turns}


def hydrated(rows: Iterable[Event], turns: Mapping[int, Turn]) -> list[dict[str, Any]]:
    told = {number: representation.turn(turn) for number, turn in turns.items()}
    return [
        {
            "seq": row.seq,
            "type": row.type,
            "data": told.get(row.data["turn"], row.data) if row.type == "turn" else row.data,
            "created_at": representation.when(row.created_at),
        }
        for row in rows
    ]


@cache
def _after(limit: int) -> Select[Event]:
    def events(dialog_id: UUID, seq: int) -> QuerySet[Event]:
        return Event.objects.filter(dialog_id=dialog_id, seq__gt=seq).order_by("seq")[:limit]

    return Select(events)


def _turns(dialog_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.filter(dialog_id=dialog_id).select_related("generation__snapshot")


def _turn(dialog_id: UUID, seq: int) -> QuerySet[Turn]:
    return _turns(dialog_id).filter(seq=seq)


_TURN = Select(_turn)
