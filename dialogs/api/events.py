"""Events of a dialog, numbered without gaps: as a list, or as a stream."""

from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from dialogs.actions import access
from dialogs.api.auth import PersonRequest, recheck_of
from dialogs.api.cursors import HEADER, refuse_stale, standing_of
from dialogs.api.lists import EventWindow, number_in
from dialogs.api.schemas import EventOut
from dialogs.api.sse import EventStream, stream_response
from dialogs.models import Dialog
from dialogs.store import events

router = Router(tags=["events"])


@router.get("/dialogs/{uuid:dialog_id}/events", response=list[EventOut])
async def list_events(
    request: PersonRequest, response: HttpResponse, dialog_id: UUID, window: Query[EventWindow]
) -> list[dict[str, Any]] | HttpResponseBase:
    """List the dialog's events, or stream them.

    With ``Accept: text/event-stream`` the answer does not end: events come as they happen (``id`` is their
    number), and ``event: draft`` with the text of the answer under way, by generation and position in characters;
    ``event: reasoning`` with what the model thinks, in the same way. Both may vanish; the ``turn`` event has the
    answer that counts. ``Last-Event-ID`` works as ``after``.

    The header ``X-Dominds-Generation`` names the database. A cursor from before a restore of a backup (``of`` is
    another generation, or ``after`` is beyond the newest event) is answered by 409 ``resync``; a stream sends
    ``event: resync`` and then all events from the first.
    """
    if "text/event-stream" not in request.headers.get("Accept", ""):
        return await sync_to_async(_list)(request, response, dialog_id, window)
    generation = await sync_to_async(_admit)(request, dialog_id)
    after = max(window.after, number_in(request.headers.get("Last-Event-ID")) or 0)
    stream = EventStream(dialog_id, request.auth.pk, after, recheck_of(request), of=window.of)
    answer = stream_response(stream.read())
    answer[HEADER] = generation
    return answer


def _list(request: PersonRequest, response: HttpResponse, dialog_id: UUID, window: EventWindow) -> list[dict[str, Any]]:
    access.visible_dialog(dialog_id, request.auth)
    newest, generation = standing_of(Dialog.objects.all(), dialog_id) or (0, "")
    response[HEADER] = generation
    refuse_stale(window.after, newest, window.of, generation)
    return events.after(dialog_id, window.after, window.limit)


def _admit(request: PersonRequest, dialog_id: UUID) -> str:
    """Return the generation of the database if the caller may read."""
    access.visible_dialog(dialog_id, request.auth)
    _, generation = standing_of(Dialog.objects.all(), dialog_id) or (0, "")
    if not connection.in_atomic_block:
        connection.close()  # back to the pool: the stream reads on other threads, for hours
    return generation
