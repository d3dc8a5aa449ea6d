"""Messages, and the turns and generations that follow from them."""

from typing import Any
from uuid import UUID

from ninja import Query, Router, Schema, Status
from pydantic import Field

from dialogs.actions import access, messages
from dialogs.actions.attachments import check_files, from_base64
from dialogs.api.auth import PersonRequest
from dialogs.api.cursors import refuse_stale
from dialogs.api.lists import Text, Window
from dialogs.api.schemas import Accepted, GenerationOut, StateOut, TurnOut
from dialogs.store import json_shapes

router = Router(tags=["messages"])


class NewAttachment(Schema):
    name: str = Field("", max_length=1000)
    data: str = Field(description="base64 of a PNG, JPEG, WebP or GIF image, or of text in UTF-8")


class NewMessage(Schema):
    text: str
    attachments: list[NewAttachment] = []
    client_message_id: Text | None = Field(None, max_length=120, description="makes the call safe to repeat")


@router.post("/dialogs/{uuid:dialog_id}/messages", response={202: Accepted})
def post_message(request: PersonRequest, dialog_id: UUID, given: NewMessage) -> Status[Any]:
    """Store a message. A worker answers it, after those that were sent before."""
    dialog = access.writable_dialog(dialog_id, request.auth)
    attached = check_files(from_base64(file.name, file.data) for file in given.attachments)
    return Status(
        202,
        messages.post_message(dialog, given.text, given.client_message_id, author=request.auth, attached=attached),
    )


@router.delete("/dialogs/{uuid:dialog_id}/messages/{int:seq}", response={204: None})
def remove_message(request: PersonRequest, dialog_id: UUID, seq: int) -> Status[None]:
    """Take back a message that still waits in the queue."""
    messages.remove_queued(access.writable_dialog(dialog_id, request.auth).pk, seq, request.auth)
    return Status(204, None)


@router.post("/dialogs/{uuid:dialog_id}/stop", response={202: StateOut})
def stop(request: PersonRequest, dialog_id: UUID) -> Status[dict[str, str]]:
    """Stop the answer under way; the part so far stays."""
    return Status(202, {"state": messages.stop(access.writable_dialog(dialog_id, request.auth).pk, request.auth)})


@router.post("/dialogs/{uuid:dialog_id}/retry", response={202: StateOut})
def retry(request: PersonRequest, dialog_id: UUID) -> Status[dict[str, str]]:
    """Answer the newest message once more, after it failed or was stopped."""
    return Status(202, {"state": messages.retry(access.writable_dialog(dialog_id, request.auth).pk, request.auth)})


@router.post("/dialogs/{uuid:dialog_id}/close", response={202: StateOut})
def close(request: PersonRequest, dialog_id: UUID) -> Status[dict[str, str]]:
    return Status(202, {"state": messages.close(access.writable_dialog(dialog_id, request.auth).pk, request.auth)})


@router.get("/dialogs/{uuid:dialog_id}/turns", response=list[TurnOut])
def list_turns(request: PersonRequest, dialog_id: UUID, window: Query[Window]) -> list[dict[str, Any]]:
    dialog = access.visible_dialog(dialog_id, request.auth)
    refuse_stale(window.after, dialog.last_turn_seq)
    turns = dialog.turns.filter(seq__gt=window.after).select_related("generation__snapshot", "author").order_by("seq")
    return [json_shapes.turn(turn) for turn in turns[: window.limit]]


@router.get("/dialogs/{uuid:dialog_id}/generations", response=list[GenerationOut])
def list_generations(request: PersonRequest, dialog_id: UUID, window: Query[Window]) -> list[dict[str, Any]]:
    """List every model call, discarded ones too."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    rows = dialog.generations.filter(pk__gt=window.after).select_related("snapshot").prefetch_related("turns")
    return [json_shapes.generation(row) for row in rows.order_by("pk")[: window.limit]]
