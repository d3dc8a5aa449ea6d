"""A dialog of a scripted agent, a mail server and a webhook."""

from collections.abc import Iterator
from typing import Any

import pytest

from dialogs.models import Dialog, SiteSettings
from dominds import sealing
from tests.dialogs.conftest import Script
from tests.dialogs.extras.notices.notices import SECRET
from tests.dialogs.factories import make_dialog
from tests.doubles.smtp import MailServer, mail_server
from tests.flows.hook import Hook, listening


@pytest.fixture
def dialog(script: Script) -> Dialog:
    return make_dialog()


@pytest.fixture
def post(settings: Any) -> Iterator[MailServer]:
    """A mail server, as the environment would name it."""
    with mail_server() as server:
        settings.EMAIL_BACKEND = "dominds.mail_server.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = server.login
        settings.MAIL_FROM, settings.PUBLIC_URL = "Dominds <dominds@example.org>", "https://dominds.example.org"
        yield server


@pytest.fixture
def hook(settings: Any) -> Iterator[Hook]:
    settings.PRIVATE_WEBHOOKS = True
    with listening() as hook:
        SiteSettings.objects.create(webhook_url=hook.url, sealed_webhook_secret=sealing.seal(SECRET))
        yield hook
