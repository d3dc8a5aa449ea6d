"""Events of a dialog, numbered without gaps: as a list, or as a stream."""

from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection
from django.http.response import HttpResponseBase
from ninja import Query, Router

from dialogs.actions import messages
from dialogs.api.auth import PersonRequest, recheck_of
from dialogs.api.lists import Window, number_in
from dialogs.api.schemas import EventOut
from dialogs.api.sse import EventStream, streamed
from dialogs.store import events

router = Router(tags=["events"])


@router.get("/dialogs/{uuid:dialog_id}/events", response=list[EventOut])
async def list_events(
    request: PersonRequest, dialog_id: UUID, window: Query[Window]
) -> list[dict[str, Any]] | HttpResponseBase:
    """With ``Accept: text/event-stream`` the answer does not end: events come as they happen (``id`` is their number),
    and ``event: draft`` with the text of the answer under way, by generation and position in characters; ``event:
    reasoning`` with what the model thinks, in the same way. Both may vanish; the ``turn`` event has the answer that
    counts. ``Last-Event-ID`` works as ``after``.
    """
    if "text/event-stream" not in request.headers.get("Accept", ""):
        return await sync_to_async(_listed)(request, dialog_id, window)
    await sync_to_async(_admit)(request, dialog_id)
    after = max(window.after, number_in(request.headers.get("Last-Event-ID")) or 0)
    return streamed(EventStream(dialog_id, request.auth.pk, after, recheck_of(request)).read())


def _listed(request: PersonRequest, dialog_id: UUID, window: Window) -> list[dict[str, Any]]:
    return events.after(messages.owned(dialog_id, request.auth).pk, window.after, window.limit)


def _admit(request: PersonRequest, dialog_id: UUID) -> None:
    messages.owned(dialog_id, request.auth)
    if not connection.in_atomic_block:
        connection.close()  # back to the pool: the stream reads on other threads, for hours
