"""Durable events: numbered per dialog without gaps, in the transaction that made them happen.

A row holds an event and, in ``more``, those that followed it: most events are a few words, and a row of its own with
its places in two indexes would cost more than the event. Only this module knows that; all others read single events.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.db.models import Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from dialogs.models import Dialog, Event, Turn
from dialogs.store import json_shapes
from dialogs.store.wakeups import poke_dialog
from dominds.db import prepared
from dominds.db.prepared import Select

NewEvent = tuple[str, dict[str, Any]]  # type and data
FEW = 3  # turns that one prepared statement reads, faster than a statement that is made for their number
TYPES = (
    "turn",
    "generation",
    "state",
    "health",
    "title",
    "round",
    "question",
    "reminder",
    "notice",
    "remediation",
    "contextBreakingUpdate",
    "context:pruned",
    "context:summarized",
)
FULL = 600  # characters of ``more`` after which the next event begins a row, since each addition writes the whole row

# The data of frequent events is stored as values in this order. Stored events must stay readable, so these lists may
# not change.
SHAPES = {
    "turn": ("turn",),
    "state": ("state", "failure"),
    "generation": ("id", "purpose", "attempt", "outcome"),
    "health": (
        "level",
        "reason",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "model_context_limit",
        "limit_source",
        "optimal_max_tokens",
        "critical_max_tokens",
        "hard_util",
        "optimal_util",
    ),
}


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event."""

    seq: int
    type: str
    data: dict[str, Any]
    created_at: datetime


# -- Writing -----------------------------------------------------------------------------------------------------------


def store(dialog: Dialog, first: int, new_events: Sequence[NewEvent], *, is_step: bool) -> None:
    """Store events from number ``first`` on, and notify browsers after the commit. The caller has locked the dialog."""
    if not new_events:
        return
    if first == 1 or not _add_to_row(dialog.pk, new_events):
        prepared.insert(*_rows(dialog, first, new_events))
    poke_dialog(dialog.pk, first + len(new_events) - 1, is_step=is_step)


def _rows(dialog: Dialog, first: int, new_events: Sequence[NewEvent]) -> Iterator[Event]:
    """Make rows of events: a single one, unless a client's whole conversation is imported."""
    start = 0
    while start < len(new_events):
        kind, data = new_events[start]
        end, more = start + 1, ""
        while end < len(new_events) and len(more) < FULL:
            more += _write_item(new_events[end])
            end += 1
        yield Event(dialog=dialog, seq=first + start, type=kind, data=data, more=more)
        start = end


# Adds events to the newest row, if it has room, behind the milliseconds since that row was made (database's clock).
_ADD = {
    vendor: f"UPDATE dialogs_event SET more = more || ',' || {milliseconds} || %s WHERE id = "  # nosec B608: constants
    f"(SELECT id FROM dialogs_event WHERE dialog_id = %s ORDER BY seq DESC LIMIT 1) AND length(more) < {FULL}"
    for vendor, milliseconds in (
        ("postgresql", "GREATEST(0, (extract(epoch FROM statement_timestamp() - created_at) * 1000)::bigint)"),
        ("sqlite", "MAX(0, CAST((julianday('now') - julianday(created_at)) * 86400000 AS INTEGER))"),
    )
}


def _add_to_row(dialog_id: UUID, new_events: Sequence[NewEvent]) -> bool:
    key = dialog_id if connection.features.has_native_uuid_field else dialog_id.hex
    return bool(prepared.run_sql(_ADD[connection.vendor], ["".join(map(_write_item, new_events)), key]))


def _write_item(item: NewEvent) -> str:
    """Write an item of ``more``, with the comma before it."""
    kind, data = item
    names = SHAPES.get(kind)
    values = [data[name] for name in names] if names and data.keys() == set(names) else [data]
    return "," + orjson.dumps([kind, *values]).decode()


# -- Reading -----------------------------------------------------------------------------------------------------------


def after(dialog_id: UUID, seq: int, limit: int = 1000) -> list[dict[str, Any]]:
    """Return the events after ``seq``, oldest first, as the page and the API receive them."""
    return hydrate(*read(dialog_id, seq, limit))


def read(dialog_id: UUID, seq: int, limit: int) -> tuple[list[StoredEvent], dict[int, Turn]]:
    """Return the next events, and the turns that they name, since a ``turn`` event stores only a number."""
    last = seq + limit  # numbers have no gaps
    rows = _rows_with(dialog_id, seq + 1, last)
    events = [event for row in rows for event in events_in(row) if seq < event.seq <= last]
    seqs = {event.data["turn"] for event in events if event.type == "turn"}
    if len(seqs) > FEW:
        turns: Iterable[Turn] = _turns(dialog_id).filter(seq__in=seqs)
    else:
        turns = _few_turns(dialog_id, *seqs, *[0] * (FEW - len(seqs))) if seqs else ()  # no turn has the number 0
    return events, {turn.seq: turn for turn in turns}


def events_in(row: Event) -> Iterator[StoredEvent]:
    """Return the events of one row."""
    yield StoredEvent(row.seq, row.type, row.data, row.created_at)
    seq, moment = row.seq, row.created_at
    for item in orjson.loads(f"[0{row.more}]"):
        if isinstance(item, int):
            moment = row.created_at + timedelta(milliseconds=item)
            continue
        seq += 1
        kind, *values = item
        yield StoredEvent(
            seq,
            kind,
            values[0] if isinstance(values[0], dict) else dict(zip(SHAPES[kind], values, strict=True)),
            moment,
        )


def rows_with(rows: QuerySet[Event], kind: str) -> QuerySet[Event]:
    """Filter the rows that hold an event of this type."""
    return rows.filter(Q(type=kind) | Q(more__contains=f',["{kind}",'))


def hydrate(events: Iterable[StoredEvent], turns: Mapping[int, Turn]) -> list[dict[str, Any]]:
    shapes = {number: json_shapes.turn(turn) for number, turn in turns.items()}
    return [
        {
            "seq": event.seq,
            "type": event.type,
            "data": shapes.get(event.data["turn"], event.data) if event.type == "turn" else event.data,
            "created_at": json_shapes.when(event.created_at),
        }
        for event in events
    ]


@Select
def _rows_with(dialog_id: UUID, first: int, last: int) -> QuerySet[Event]:
    """Return the rows that hold the events ``first`` to ``last``."""
    rows = Event.objects.filter(dialog_id=dialog_id)
    begun = Subquery(rows.filter(seq__lte=first).order_by("-seq").values("seq")[:1])
    return rows.filter(seq__gte=Coalesce(begun, Value(0)), seq__lte=last).order_by("seq")


def _turns(dialog_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.filter(dialog_id=dialog_id).select_related("generation__snapshot", "author")


@Select
def _few_turns(dialog_id: UUID, first: int, second: int, third: int) -> QuerySet[Turn]:
    return _turns(dialog_id).filter(seq__in=[first, second, third])
