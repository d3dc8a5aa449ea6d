"""Reminders of a dialog, edited by its person."""

from typing import Any

from django.http import Http404

from dialogs.actions import reminders
from dialogs.models import Dialog
from dialogs.views.answers import PersonRequest, dialog_action
from dialogs.views.forms import ReminderForm, clean


@dialog_action
def add(request: PersonRequest, dialog: Dialog) -> None:
    given = _given_fields(request)
    reminders.add(dialog.pk, given["text"], given["position"])


@dialog_action
def update(request: PersonRequest, dialog: Dialog, reminder_id: int) -> None:
    if not dialog.reminders.filter(pk=reminder_id).exists():
        raise Http404
    given = _given_fields(request)
    reminders.update(dialog.pk, reminder_id, text=given["text"], position=given["position"])


@dialog_action
def delete(request: PersonRequest, dialog: Dialog, reminder_id: int) -> None:
    if not dialog.reminders.filter(pk=reminder_id).exists():
        raise Http404
    reminders.delete(dialog.pk, reminder_id)


def _given_fields(request: PersonRequest) -> dict[str, Any]:
    given = clean(ReminderForm(request.POST))
    return {**given, "text": given["text"].replace("\r\n", "\n")}
