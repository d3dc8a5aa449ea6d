"""Removal of dialogs that expired or were deleted a while ago.

Their content is deleted. The numbers of their calls stay, since sums and budgets count them.
"""

from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models.functions import Now

from dialogs.models import (
    Artifact,
    Attachment,
    Client,
    Dialog,
    Event,
    Generation,
    Question,
    RecallChoice,
    Reminder,
    RequestPart,
    Round,
    Turn,
)
from dialogs.state import AT_REST, State
from remediation.models import CleanupTask, ContextEvent, PreparedRewrite, RemediationRun, RemovedUnit

log = structlog.get_logger(__name__)

CONTENT = (
    RemovedUnit,
    PreparedRewrite,
    CleanupTask,
    Event,
    Turn,
    Question,
    Reminder,
    Artifact,
    Attachment,
    RecallChoice,
    Client,
    Round,
    RequestPart,
)
NUMBERS = (Generation, RemediationRun, ContextEvent)  # of which the words go

MOST_AT_ONCE = 500


def remove_expired() -> int:
    """Remove what has expired, and return how many dialogs that were."""
    removed = 0
    due = (
        Dialog._base_manager.filter(expires_at__lte=Now(), state__in=AT_REST)
        .order_by("expires_at")
        .values_list("pk", flat=True)
    )
    while ids := list(due[:MOST_AT_ONCE]):
        now = sum(_remove(dialog_id) for dialog_id in ids)
        removed += now
        if now < MOST_AT_ONCE:
            break
    if removed:
        log.info("expired_dialogs_removed", dialogs=removed)
    return removed


@transaction.atomic
def _remove(dialog_id: UUID) -> bool:
    """Remove a dialog, unless somebody changes it, or it runs again or was given more time."""
    due = Dialog._base_manager.filter(pk=dialog_id, expires_at__lte=Now(), state__in=AT_REST, lease_owner="")
    if due.select_for_update(skip_locked=True).first() is None:
        return False
    for model in CONTENT:
        model._default_manager.filter(dialog=dialog_id).delete()
    RemediationRun.attempts.filter(dialog=dialog_id).update(view=[], removed=[], ledger=[], summary="", reason="")
    ContextEvent.objects.filter(dialog=dialog_id).update(message="")
    Generation.objects.filter(dialog=dialog_id).update(error="", recalled=[], sent=None)
    gone: dict[str, Any] = {
        "title": "",
        "folder": None,
        "failure": "",
        "requested_package": "",
        "statements": [],
        "request_parts": None,
        "state": State.CLOSED.value,
    }
    Dialog._base_manager.filter(pk=dialog_id).update(**gone, closed_at=Now(), expires_at=None, removed_at=Now())
    return True
