"""Tells operators that a dialog needs a human: by a webhook of theirs, after commit, never in anybody's way."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import structlog
from django.db import transaction

from dialogs.models import Question, SiteSettings

log = structlog.get_logger(__name__)

_background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="webhook")
TIMEOUT_SECONDS = 5


def tell(question: Question) -> None:
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
    request = urllib.request.Request(
        url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    try:
        urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()  # nosec B310  the form allows http and https only
    except (OSError, ValueError) as error:
        log.warning("webhook_failed", url=url, error=str(error))
