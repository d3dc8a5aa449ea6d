"""The operators' webhook: called after the commit for each new question, in the background."""

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import structlog
from django.conf import settings
from django.db import transaction

from dialogs.models import Question, SiteSettings
from dominds import outbound_http

log = structlog.get_logger(__name__)

_background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="webhook")
TIMEOUT_SECONDS = 5


def notify(question: Question) -> None:
    url = SiteSettings.current().webhook_url
    if not url:
        return
    body = {
        "question": str(question.pk),
        "dialog": str(question.dialog_id),
        "kind": question.kind,
        "text": question.text,
        "path": f"/q4h/{question.pk}/",
    }
    transaction.on_commit(lambda: _background.submit(_post, url, body), robust=True)


def _post(url: str, body: dict[str, str]) -> None:
    """The address was checked when it was saved; what its host name resolves to is checked again now."""
    try:
        status = outbound_http.post(
            url,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            timeout_seconds=TIMEOUT_SECONDS,
            allow_private=settings.PRIVATE_WEBHOOKS,
        )
    except (OSError, ValueError, HTTPException) as error:
        log.warning("webhook_failed", url=url, error=str(error))
    else:
        if status >= 300:
            log.warning("webhook_failed", url=url, status=status)
