"""Reminders of a dialog."""

from typing import Any
from uuid import UUID

from ninja import Router, Schema, Status
from pydantic import Field

from dialogs.actions import access, reminders
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import LARGEST, Text
from dialogs.api.schemas import ReminderOut
from dialogs.errors import Invalid
from dialogs.models import Dialog
from dialogs.store import json_shapes

router = Router(tags=["reminders"])


class NewReminder(Schema):
    text: Text
    position: int | None = Field(None, ge=0, le=LARGEST, description="0 is first; the end by default")


class ReminderChange(Schema):
    text: Text | None = None
    position: int | None = Field(None, ge=0, le=LARGEST)


@router.get("/dialogs/{uuid:dialog_id}/reminders", response=list[ReminderOut])
def list_reminders(request: PersonRequest, dialog_id: UUID) -> list[dict[str, Any]]:
    return _list(access.visible_dialog(dialog_id, request.auth))


@router.post("/dialogs/{uuid:dialog_id}/reminders", response={201: ReminderOut})
def add_reminder(request: PersonRequest, dialog_id: UUID, given: NewReminder) -> Status[dict[str, Any]]:
    dialog = access.writable_dialog(dialog_id, request.auth)
    row = reminders.add(dialog.pk, given.text, given.position)
    return Status(201, _one(dialog, row.pk))


@router.patch("/dialogs/{uuid:dialog_id}/reminders/{int:reminder_id}", response=ReminderOut)
def change_reminder(request: PersonRequest, dialog_id: UUID, reminder_id: int, given: ReminderChange) -> dict[str, Any]:
    dialog = access.writable_dialog(dialog_id, request.auth)
    if given.text is None and given.position is None:
        raise Invalid("Nothing to change: send text, position or both.")
    reminders.update(dialog.pk, reminder_id, text=given.text, position=given.position)
    return _one(dialog, reminder_id)


@router.delete("/dialogs/{uuid:dialog_id}/reminders/{int:reminder_id}", response={204: None})
def delete_reminder(request: PersonRequest, dialog_id: UUID, reminder_id: int) -> Status[None]:
    reminders.delete(access.writable_dialog(dialog_id, request.auth).pk, reminder_id)
    return Status(204, None)


def _list(dialog: Dialog) -> list[dict[str, Any]]:
    return [json_shapes.reminder(row, est_tokens) for row, est_tokens in reminders.list_reminders(dialog)]


def _one(dialog: Dialog, reminder_id: int) -> dict[str, Any]:
    return next(row for row in _list(dialog) if row["id"] == reminder_id)
