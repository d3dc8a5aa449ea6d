"""System checks of mails, reported at every start."""

from typing import Any

from django.conf import settings
from django.core import checks


@checks.register("installation")
def mails_have_links(**_: Any) -> list[checks.CheckMessage]:
    if settings.PUBLIC_URL or not settings.MAIL_FROM:
        return []
    missing = "DOMINDS_EMAIL_URL is set, but DOMINDS_PUBLIC_URL is not: mails about questions hold no links."
    return [checks.Warning(missing, hint="Set it to where people reach the pages.", id="dialogs.W004")]
