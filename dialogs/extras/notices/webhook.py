"""The operators' webhook: what it reports, and the call itself, which is signed if the site has a secret."""

import hmac
import json
import re
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from http.client import HTTPException
from typing import Any

from django.conf import settings
from django.utils import timezone

from dialogs.models import Delivery, Dialog, Question, SiteSettings
from dominds import outbound_http, sealing
from dominds.unreachable import plain_reason
from remediation.models import RemediationRun

TIMEOUT_SECONDS = 5
PASSING = (408, 425, 429)  # and 5xx: the same call may succeed later
MOST_CHARS = 3_000  # the question's part of the line for people
SIGNATURE = "X-Dominds-Signature"
MENTIONS = re.compile(r"(?<![^\W_])@(?=\w)")  # an "@" before a word, but not within a mail address
HIDES_ADDRESS = re.compile(r"\](?=[(\[:])")  # where the text of a Markdown link ends and its address begins
FORMER_SIGNS = timedelta(days=1)  # the time in which the receiver can be given a new secret


class Failed(Exception):
    """Raised when the call did not arrive, or was refused. ``may_pass`` says that another try may succeed."""

    def __init__(self, message: str, *, may_pass: bool) -> None:
        super().__init__(message)
        self.may_pass = may_pass


def question_body(question: Question) -> dict[str, Any]:
    """Return the body about a question. Slack and Mattermost show its ``text``."""
    dialog, path = question.dialog, f"/q4h/{question.pk}/"
    if question.state == Question.State.OPEN:
        place = f"A program in “{dialog}”" if question.is_from_outside else _place(dialog)
        sentence = f"{place} needs you: {question.text[:MOST_CHARS]}"
    else:
        by = f" by {question.resolved_by}" if question.resolved_by else ""
        sentence = f"{_place(dialog)}: the question was {question.state}{by}."
    return {
        "question": str(question.pk),
        "dialog": str(dialog.pk),
        "kind": question.kind,
        "state": question.state,
        "asked": question.text,
        "path": path,
        "text": _line(sentence, path),
    }


def level_body(dialog: Dialog, level: str) -> dict[str, Any]:
    path = f"/d/{dialog.pk}/"
    sentence = f"{_place(dialog)}: the context is at level {level}, {dialog.prompt_tokens or 0:,} tokens reported."
    return {
        "dialog": str(dialog.pk),
        "level": level,
        "prompt_tokens": dialog.prompt_tokens,
        "path": path,
        "text": _line(sentence, path),
    }


def rewrite_body(dialog: Dialog, run: RemediationRun) -> dict[str, Any]:
    path = f"/d/{dialog.pk}/archive/{run.pk}/"
    sizes = f"est. {run.est_before:,} tokens before, est. {run.est_after:,} after"
    return {
        "dialog": str(dialog.pk),
        "policy": run.policy,
        "reason": run.reason,
        "est_before": run.est_before,
        "est_after": run.est_after,
        "path": path,
        "text": _line(f"{_place(dialog)}: the context was rewritten ({run.policy}), {sizes}.", path),
    }


def _place(dialog: Dialog) -> str:
    return f"{dialog.agent} in “{dialog}”"


def _line(sentence: str, path: str) -> str:
    """Return a line in which a model can mention nobody, hide no address and show no image: three characters are
    written as Slack asks, and what Mattermost reads as a mention, link or image is parted by a blank without width.
    """
    sentence = sentence.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    sentence = HIDES_ADDRESS.sub("]\u200b", MENTIONS.sub("@\u200b", sentence))
    return f"{sentence} {settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else sentence


def signature_of(secrets: Iterable[str], body: bytes, unix_seconds: int) -> str:
    signed = f"{unix_seconds}.".encode() + body
    digests = (hmac.new(secret.encode(), signed, "sha256").hexdigest() for secret in secrets)
    return ",".join([f"t={unix_seconds}", *(f"v1={digest}" for digest in digests)])


def change_secret(site: SiteSettings, secret: str) -> None:
    """Set the columns of a new secret, unless it is the present one. The former one also signs for ``FORMER_SIGNS``."""
    try:
        former = sealing.unseal(site.sealed_webhook_secret) if site.sealed_webhook_secret else ""
    except sealing.Unreadable:
        former = ""
    if former == secret:
        return
    site.sealed_former_webhook_secret = site.sealed_webhook_secret if former else ""
    site.webhook_secret_changed_at = timezone.now()
    site.sealed_webhook_secret = sealing.seal(secret)


def _secrets_of(site: SiteSettings) -> Iterator[str]:
    """Yield the secrets that sign now, oldest last. Raises ``sealing.Unreadable``.

    A receiver that reads only one signature reads the last one, and may not have the new secret yet.
    """
    yield sealing.unseal(site.sealed_webhook_secret)
    changed_at = site.webhook_secret_changed_at
    if site.sealed_former_webhook_secret and changed_at and timezone.now() - changed_at < FORMER_SIGNS:
        yield sealing.unseal(site.sealed_former_webhook_secret)


def send(row: Delivery) -> bool:
    """Call the site's present address, or return False if it has none any more. Raises ``Failed``.

    The address was checked when it was saved, and the addresses of its host name are checked again now.
    """
    site = SiteSettings.current()
    if not site.webhook_url:
        return False
    # The number of the delivery is in the signed body too, so that receivers can tell a replay.
    body = json.dumps({**json.loads(row.body), "delivery": row.pk}).encode()
    headers = {"Content-Type": "application/json", "X-Dominds-Delivery": str(row.pk)}
    if site.sealed_webhook_secret:
        try:
            headers[SIGNATURE] = signature_of(_secrets_of(site), body, int(time.time()))
        except sealing.Unreadable:
            sealed_before = "The webhook's secret was stored under another SECRET_KEY: enter it again in the settings."
            raise Failed(sealed_before, may_pass=True) from None
    status = post(site.webhook_url, body, headers, allow_private=settings.PRIVATE_WEBHOOKS)
    check_status("The webhook", status)
    return True


def post(url: str, body: bytes, headers: dict[str, str], *, allow_private: bool) -> int:
    """Return the status of the answer, without following redirects. Raises ``Failed`` if there is none."""
    try:
        return outbound_http.post(url, body, headers, timeout_seconds=TIMEOUT_SECONDS, allow_private=allow_private)
    except outbound_http.Refused as error:
        raise Failed(str(error), may_pass=False) from error
    except HTTPException as error:
        raise Failed(f"its answer is no HTTP ({type(error).__name__})", may_pass=True) from error
    except (OSError, ValueError) as error:
        raise Failed(plain_reason(str(error)) or type(error).__name__, may_pass=True) from error


def check_status(who: str, status: int) -> None:
    """Raise ``Failed`` for a status that is no success."""
    if status >= 300:
        raise Failed(f"{who} answered with HTTP {status}.", may_pass=status >= 500 or status in PASSING)
