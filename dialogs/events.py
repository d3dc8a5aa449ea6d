"""Durable events: numbered per dialog without gaps, in the transaction that made them happen."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from dialogs import representation
from dialogs.models import Dialog, Event, Turn
from dialogs.poke import poke_dialog
from dominds import statements

Draft = tuple[str, dict[str, Any]]  # type and data


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
    return hydrate(dialog_id, Event.objects.filter(dialog_id=dialog_id, seq__gt=seq).order_by("seq")[:limit])


def hydrate(dialog_id: UUID, events: Iterable[Event]) -> list[dict[str, Any]]:
    """Give events their payload. A ``turn`` event stores its turn's seq alone; the turn is read from its row."""
    rows = list(events)
    seqs = [row.data["turn"] for row in rows if row.type == "turn"]
    turns = (
        {
            turn.seq: representation.turn(turn)
            for turn in Turn.objects.filter(dialog_id=dialog_id, seq__in=seqs).select_related("generation__snapshot")
        }
        if seqs
        else {}
    )
    return [
        {
            "seq": row.seq,
            "type": row.type,
            "data": turns.get(row.data["turn"], row.data) if row.type == "turn" else row.data,
            "created_at": representation.when(row.created_at),
        }
        for row in rows
    ]
