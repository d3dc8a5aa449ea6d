"""Quarantine of a dialog with unreadable rows, by a statement that reads none of them."""

from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError
from django.db.models import F
from django.db.models.functions import Now

from dialogs.models import Dialog, Turn
from dialogs.state import State
from dialogs.store.change import LeaseLost, open_change

log = structlog.get_logger(__name__)

DAMAGED = (
    "This dialog is damaged: something that is stored of it cannot be read. Other dialogs are not affected. "
    "Export it, clear it to begin a fresh round, or close it; sending again is tried three times."
)
PASSING = (LeaseLost, OperationalError, InterfaceError)  # errors that say nothing about the rows


def quarantine(dialog_id: UUID) -> None:
    """End all work of the dialog, with a failure that people see, and fence out its worker.

    Its other rows are neither read nor changed, except for the message's own status, if that is possible.
    """
    log.exception("dialog_damaged", dialog_id=str(dialog_id))
    Dialog.objects.filter(pk=dialog_id).update(
        state=State.FAILED.value,
        failure=DAMAGED,
        damaged_at=Now(),
        epoch=F("epoch") + 1,
        answering_seq=None,
        continuing=False,
        requested_rewrite="",
        requested_package="",
        running_call="",
        stop_requested=False,
        lease_owner="",
        wake_at=None,
        crashes=0,
    )
    try:
        _announce(dialog_id)
    except PASSING:
        raise
    except Exception:
        log.exception("damage_not_announced", dialog_id=str(dialog_id))


def _announce(dialog_id: UUID) -> None:
    with open_change(dialog_id) as change:
        change.keeps_state = True
        for seq in change.dialog.turns.filter(status=Turn.Status.ANSWERING).values_list("seq", flat=True):
            change.mark(seq, Turn.Status.FAILED)
        change.event("state", state=change.dialog.state, failure=change.dialog.failure)
