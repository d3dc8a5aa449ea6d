"""Who asks a server outside holds no database connection meanwhile: a silent one would keep all of them from others."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import connection, transaction

from dialogs.extras.notices import webhook
from dialogs.store import wakeups
from dialogs.tools import mcp_client
from dialogs.tools.mcp_config import Server
from dominds import outbound_http, waits
from dominds.db.hand_back import HeldTransaction
from dominds.llm.connect import connect
from dominds.llm.embeddings import embed
from dominds.llm.messages import Message, Request, Role
from dominds.llm.models.model import ModelInfo
from dominds.llm.providers import lmstudio, server_window
from dominds.llm.providers.ollama import OLLAMA
from dominds.oidc import provider as oidc
from dominds.oidc.registration import Registration

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = "http://127.0.0.1:1"  # refuses at once
MODEL = ModelInfo("gone", "m", "m", OLLAMA, base_url=f"{NOBODY}/v1")
REGISTRATION = Registration("Gone", NOBODY, "id", "secret", "openid", "groups", True, 1)
CALLS: dict[str, Callable[[], Any]] = {
    "an image": lambda: outbound_http.get(NOBODY, {}, timeout_seconds=1, most_bytes=1, allow_private=True),
    "a webhook": lambda: webhook.post(NOBODY, b"", {}, allow_private=True),
    "an address that is looked up": lambda: outbound_http.check(NOBODY, allow_private=True),
    "a model": lambda: connect(MODEL).stream(Request("m", "", (Message(Role.USER, "Hello"),))).run(lambda _: None),
    "embeddings": lambda: embed(MODEL, {"input": "Hello"}),
    "a local server": lambda: lmstudio.loaded_limit(f"{NOBODY}/v1", "m"),
    "an OpenID provider": lambda: oidc.address_at_provider(REGISTRATION, oidc.Attempt(), NOBODY),
    "a tool server": lambda: mcp_client.list_tools(Server("gone", url=NOBODY)),
    "a mail server": lambda: EmailMessage("Hello", "", "a@example.org", ["b@example.org"]).send(),
}


@pytest.fixture(autouse=True)
def mail_server(settings: Any) -> None:
    settings.EMAIL_BACKEND = "dominds.mail_server.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    server_window.forget()


@pytest.mark.parametrize("what", CALLS)
def test_a_call_outside_gives_the_connection_back(what: str) -> None:
    User.objects.exists()
    assert connection.connection is not None
    with suppress(Exception):
        CALLS[what]()
    assert connection.connection is None


@pytest.mark.parametrize("what", CALLS)
def test_a_call_within_a_transaction_raises_in_tests(what: str) -> None:
    with transaction.atomic(), pytest.raises(HeldTransaction):
        CALLS[what]()


def test_elsewhere_it_is_logged_and_goes_on(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.STRICT_WAITS = False
    with transaction.atomic():
        waits.begin("somebody")
        User.objects.exists()
    assert "transaction_held_while_waiting" in caplog.text


@pytest.mark.postgresql
def test_both_ends_of_postgresqls_connections_notice_a_lost_peer() -> None:
    """The tests' server is reached by a Unix socket, where the kernel knows; so what is asked for counts."""
    connection.ensure_connection()
    info = connection.connection.info
    assert info.get_parameters() | {"tcp_user_timeout": "8000", "keepalives_idle": "4"} == info.get_parameters()
    assert "-c tcp_user_timeout=8000" in info.options


def test_a_connection_to_redis_notices_it_too() -> None:
    opened: Any = wakeups.client().connection_pool.get_connection()
    try:
        assert options_of(opened._sock.fileno()) == waits.keepalive_options()
    finally:
        wakeups.client().connection_pool.release(opened)


def options_of(file: int) -> dict[int, int]:
    with socket.socket(fileno=os.dup(file)) as twin:
        return {name: twin.getsockopt(socket.IPPROTO_TCP, name) for name in waits.keepalive_options()}
