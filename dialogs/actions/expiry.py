"""Removal of expired dialogs, and of dialogs that were deleted a while ago.

Their content is deleted. The numbers of their calls stay, because sums and budgets count them.
"""

from typing import Any
from uuid import UUID

import structlog
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from redis import RedisError

from dialogs.extension import installed_extensions
from dialogs.models import (
    Artifact,
    Attachment,
    Client,
    Delivery,
    Dialog,
    Event,
    Generation,
    Question,
    RecallChoice,
    Reminder,
    RequestPart,
    Round,
    Turn,
    TurnVectors,
)
from dialogs.state import AT_REST, State
from dialogs.store import wakeups
from remediation.models import CleanupTask, ContextEvent, PreparedRewrite, RemediationRun, RemovedUnit

log = structlog.get_logger(__name__)

CONTENT = (
    RemovedUnit,
    PreparedRewrite,
    CleanupTask,
    Event,
    Turn,
    TurnVectors,
    Question,
    Reminder,
    Artifact,
    Attachment,
    RecallChoice,
    Client,
    Round,
    RequestPart,
)
NUMBERS = (Generation, RemediationRun, ContextEvent)  # rows that stay, without their texts

MOST_AT_ONCE = 500


def remove_expired() -> int:
    """Remove the dialogs whose time is over, and return their number."""
    removed = 0
    due = (
        Dialog._base_manager.filter(expires_at__lte=Now(), state__in=AT_REST)
        .order_by("expires_at")
        .values_list("pk", flat=True)
    )
    while ids := list(due[:MOST_AT_ONCE]):
        removed_now = sum(_remove(dialog_id) for dialog_id in ids)
        removed += removed_now
        if removed_now < MOST_AT_ONCE:
            break
    if removed:
        log.info("expired_dialogs_removed", dialogs=removed)
    return removed


@transaction.atomic
def _remove(dialog_id: UUID) -> bool:
    """Remove a dialog and return True, unless somebody is changing it, it runs again, or it was given more time."""
    due = Dialog._base_manager.filter(pk=dialog_id, expires_at__lte=Now(), state__in=AT_REST, lease_owner="")
    if due.select_for_update(skip_locked=True).first() is None:
        return False
    _empty(dialog_id)
    return True


def erase_now(dialog_id: UUID) -> None:
    """Remove a dialog in any state. A worker that drives it is fenced out and can store nothing more."""
    with transaction.atomic():
        Dialog._base_manager.select_for_update().get(pk=dialog_id)
        Dialog._base_manager.filter(pk=dialog_id).update(
            epoch=F("epoch") + 1,
            answering_seq=None,
            continuing=False,
            requested_rewrite="",
            stop_requested=False,
            lease_owner="",
            lease_until=None,
            wake_at=None,
            group=None,
            link=None,
        )
        running = Generation.objects.filter(dialog=dialog_id, outcome=Generation.Outcome.RUNNING)
        running.update(outcome=Generation.Outcome.STOPPED, finished_at=Now())
        _empty(dialog_id)
    _forget_live_text(dialog_id)


def _forget_live_text(dialog_id: UUID) -> None:
    """Delete the live text. Without Redis it stays until it expires, within an hour."""
    newest = Generation.objects.filter(dialog=dialog_id).order_by("-pk").values_list("pk", flat=True)[:MOST_AT_ONCE]
    keys = [wakeups.live_text_key(pk, reasoning=reasoning) for pk in newest for reasoning in (False, True)]
    try:
        if keys:
            wakeups.client().delete(*keys)
    except RedisError as error:
        log.warning("live_text_left", dialog_id=str(dialog_id), error=str(error))


def _empty(dialog_id: UUID) -> None:
    for model in CONTENT:
        model._default_manager.filter(dialog=dialog_id).delete()
    RemediationRun.attempts.filter(dialog=dialog_id).update(
        view=[], removed=[], ledger=[], summary="", reason="", facts=None
    )
    RemediationRun.attempts.filter(dialog=dialog_id).exclude(rejected="").update(rejected="removed")
    ContextEvent.objects.filter(dialog=dialog_id).update(message="")
    Generation.objects.filter(dialog=dialog_id).update(error="", recalled=[], sent=None, provider_fields=None)
    # A webhook call that is not about a question refers to the dialog only in its body.
    Delivery.objects.filter(body__contains=str(dialog_id)).delete()
    LogEntry.objects.filter(object_id=str(dialog_id)).update(object_repr="erased", change_message="")
    for extension in installed_extensions():
        extension.dialog_erased(dialog_id)
    gone: dict[str, Any] = {
        "title": "",
        "folder": None,
        "failure": "",
        "requested_package": "",
        "statements": [],
        "request_parts": None,
        "running_call": "",
        "repeats": {},
        "source": "",
        "state": State.CLOSED.value,
    }
    Dialog._base_manager.filter(pk=dialog_id).update(**gone, closed_at=Now(), expires_at=None, removed_at=Now())
