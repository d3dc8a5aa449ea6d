"""An operator's interventions in a stuck dialog. Each is logged in the admin's log of actions."""

from uuid import UUID

import structlog
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from dialogs.actions import messages
from dialogs.context.tool_calls import abandon
from dialogs.errors import Conflict, NotFound, Refusal
from dialogs.models import Dialog, Generation, Turn
from dialogs.state import State
from dialogs.store import wakeups
from dialogs.store.change import open_change
from dialogs.store.lease import end_running, release
from dialogs.store.quarantine import PASSING, quarantine
from remediation.models import CleanupTask

log = structlog.get_logger(__name__)


def interrupt(dialog_id: UUID, operator: User) -> None:
    """Stop the answer under way, as its owner could."""
    messages.stop(dialog_id, operator)
    _write_down(dialog_id, operator, "Interrupted")


def wake(dialog_id: UUID, operator: User) -> None:
    """Send the wake-up once more, as the sweeper does."""
    dialog = Dialog.objects.filter(pk=dialog_id).first()
    if dialog is None:
        raise NotFound
    if dialog.state not in (State.QUEUED, State.GENERATING):
        raise Conflict("nothing_owed", f"The dialog is {dialog.state}: there is nothing to wake it for.")
    with transaction.atomic():
        wakeups.wake(dialog_id)
    _write_down(dialog_id, operator, "Woken")


def retry(dialog_id: UUID, operator: User) -> None:
    messages.retry(dialog_id, operator)
    _write_down(dialog_id, operator, "Retried")


def fail(dialog_id: UUID, operator: User) -> None:
    """End the message under way as failed. Its worker is fenced out by a new epoch."""
    try:
        _fail(dialog_id, operator)
    except (*PASSING, Refusal):
        raise
    except Exception:  # noqa: BLE001  quarantine logs it
        quarantine(dialog_id)
    _write_down(dialog_id, operator, "Failed")


def _fail(dialog_id: UUID, operator: User) -> None:
    with open_change(dialog_id) as change:
        dialog = change.dialog
        if dialog.state not in (State.QUEUED, State.GENERATING):
            raise Conflict("nothing_owed", f"The dialog is {dialog.state}: there is no message to give up.")
        change.take_next_message()
        change.act(operator, "gave this message up")
        end_running(
            change,
            Generation.Outcome.CRASHED,
            finished_at=timezone.now(),
            error_kind="given_up",
            error="An operator gave this attempt up.",
        )
        abandon(change, "Not run: an operator gave the message up.")
        dialog.epoch += 1
        dialog.failure = "An operator gave this message up. Try again, or send another."
        dialog.requested_rewrite = dialog.requested_package = dialog.running_call = ""
        dialog.wake_at = None
        change.end_message(Turn.Status.FAILED)
        release(change)
        change.wakes = True


def finish_task(task_id: int, operator: User) -> None:
    """Close a cleanup task: the operator has looked at its dialog."""
    done = CleanupTask.objects.filter(pk=task_id, state=CleanupTask.State.OPEN)
    if not done.update(state=CleanupTask.State.DONE, done_at=timezone.now(), done_by=operator):
        raise Conflict("already_done", "This task is done already.")


def _write_down(dialog_id: UUID, operator: User, action: str) -> None:
    log.info("intervention", action=action.lower(), dialog_id=str(dialog_id), operator=operator.get_username())
    LogEntry.objects.log_actions(
        operator.pk, Dialog.objects.filter(pk=dialog_id), CHANGE, f"{action} from the dashboard."
    )
