"""Dialogs by id, for people who may see or change them."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet

from dialogs.errors import Forbidden, NotFound
from dialogs.models import Dialog
from dialogs.permissions import may_act, may_see
from dominds.db.prepared import Select


@Select
def with_agent(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.select_related("agent").filter(pk=dialog_id)


def visible_dialog(dialog_id: UUID, user: User) -> Dialog:
    """Return the dialog if this person may see it. Raises ``NotFound``."""
    dialog = with_agent.first(dialog_id)
    if dialog is None or not may_see(user, dialog):
        raise NotFound()
    return dialog


def writable_dialog(dialog_id: UUID, user: User) -> Dialog:
    """Return the dialog for a person who is about to change it. A person who may only read it is told so."""
    dialog = visible_dialog(dialog_id, user)
    check_may_act(dialog, user)
    return dialog


def check_may_act(dialog: Dialog, user: User) -> None:
    if not may_act(user, dialog):
        raise Forbidden("This is somebody else's dialog. To act in it takes the permission act_in_all_dialogs.")
