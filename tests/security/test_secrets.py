"""S11, S12, I14: a provider's key goes to that provider and nowhere else, even when the provider sends it back."""

import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth.hashers import make_password
from django.db import connection
from django.test import Client

from dialogs.accounts import api_keys
from dialogs.actions import messages
from dialogs.models import ApiKey, Dialog
from dialogs.runtime.driver import drive
from dominds import logs
from tests.dialogs.factories import UserFactory, make_dialog
from tests.dominds.llm.model_server import Connection, ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

# Shaped like no provider's keys, so that only knowing it helps; under a name that says nothing, too.
CANARY = "canary+0f4b/9d2e7a61c8.plainly-unshaped"
VARIABLE = "WHATEVER_IT_IS_CALLED"  # at the start of a process only names like SOME_API_KEY are known to be secret
KINDS = {"openai": "/v1", "openai-compatible": "/v1", "anthropic": ""}


@pytest.fixture
def logged() -> Iterator[StringIO]:
    """Everything that is logged, from DEBUG on, in both formats."""
    stream = StringIO()
    root, level = logging.getLogger(), logging.getLogger().level
    handlers = []
    for formatter in (logs.json_formatter(), logs.console_formatter()):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        root.addHandler(handler)
        handlers.append(handler)
    root.setLevel(logging.DEBUG)
    noisy = [logging.getLogger(name) for name in ("httpx2", "httpcore2", "openai", "anthropic", "celery")]
    levels = [logger.level for logger in noisy]
    for logger in noisy:
        logger.setLevel(logging.DEBUG)
    yield stream
    for handler in handlers:
        root.removeHandler(handler)
    root.setLevel(level)
    for logger, before in zip(noisy, levels, strict=True):
        logger.setLevel(before)


def echo(status: bytes, content_type: bytes = b"application/json") -> Any:
    """An answer that carries the key in its body, its headers and its status line."""
    key = CANARY.encode()
    body = b'{"error": {"message": "Incorrect API key provided: %s. Authorization: Bearer %s", "type": "%s"}}' % (
        key,
        key,
        key,
    )

    def play(connection: Connection) -> None:
        head = b"HTTP/1.1 %s %s\r\ncontent-type: %s\r\nx-request-id: %s\r\ncontent-length: %d\r\n\r\n"
        connection.send(head % (status, key, content_type, key, len(body)) + body)

    return play


def cut_stream(connection: Connection) -> None:
    """A stream that begins well and then quotes the key in an error event."""
    connection.start_stream()
    connection.chunk(b'data: {"error": {"message": "key %s is over its quota"}}\n\n' % CANARY.encode())
    connection.end_stream()


PLAYS = {
    "401": echo(b"401"),
    "403": echo(b"403"),
    "400": echo(b"400"),
    "429": echo(b"429"),
    "500 html": echo(b"500", b"text/html"),
    "302": echo(b"302"),
    "error in a 200": cut_stream,
}


@pytest.fixture
def asked(settings: Any, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Dialog]:
    """A dialog with a model of each kind, all on one server that gives the key away."""
    monkeypatch.setenv(VARIABLE, CANARY)
    settings.MINDS_DIR, settings.DATA_DIR = tmp_path / "minds", tmp_path / "var"
    (tmp_path / "minds").mkdir()
    model = {"m": {"name": "M", "context_length": 10_000}}
    providers = {
        kind: {"name": kind, "apiType": kind, "baseUrl": server.url + path, "apiKeyEnvVar": VARIABLE, "models": model}
        for kind, path in KINDS.items()
    }
    (tmp_path / "minds" / "llm.yaml").write_text(yaml.safe_dump({"providers": providers}))
    return {kind: make_dialog(id=kind, provider=kind, model="m") for kind in providers}


def body_of(answer: Any) -> str:
    """All of an answer, streamed or not."""

    async def streamed() -> bytes:
        return b"".join([chunk async for chunk in answer])

    return (async_to_sync(streamed)() if answer.streaming else answer.content).decode()


def everything_stored() -> str:
    with connection.cursor() as cursor:
        results = []
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f'SELECT t::text FROM "{model._meta.db_table}" t')
            results += [row[0] for row in cursor.fetchall()]
    return "\n".join(results)


@pytest.mark.parametrize("play", PLAYS)
def test_a_key_that_a_provider_echoes_appears_nowhere(
    asked: dict[str, Dialog], server: ModelServer, logged: StringIO, client: Client, play: str
) -> None:
    server.will(PLAYS[play])
    staff = UserFactory.create(is_staff=True, is_superuser=True)
    client.force_login(staff)
    for kind, dialog in asked.items():
        messages.post_message(dialog.pk, "Hi")
        Dialog.objects.filter(pk=dialog.pk).update(tries=9)  # no waiting for another try
        drive(dialog.pk)
        dialog.refresh_from_db()
        assert dialog.generations.filter(outcome="failed").exists(), kind
        assert dialog.failure, kind
        for path in (
            f"/d/{dialog.pk}/",
            f"/d/{dialog.pk}/context/",
            f"/d/{dialog.pk}/export.json",
            "/ops/",
            "/models/",
        ):
            assert CANARY not in body_of(client.get(path)), (kind, path)
        for path in ("generations", "turns", "events", "export"):
            answer = client.get(f"/api/dialogs/{dialog.pk}/{path}")
            assert CANARY not in body_of(answer), (kind, path)
    assert any(CANARY in "".join(asked.headers.values()) for asked in server.asked), "the key was never sent at all"
    assert CANARY not in everything_stored()
    assert "driving" in logged.getvalue()
    assert CANARY not in logged.getvalue()


def test_passwords_and_keys_are_stored_as_hashes_and_logged_nowhere(client: Client, logged: StringIO) -> None:
    user = UserFactory.create(password=make_password("a canary of a password"))
    key = api_keys.create_key(user, name="program")
    client.post("/login/", {"username": user.username, "password": "a canary of a wrong one"})
    assert client.post("/login/", {"username": user.username, "password": "a canary of a password"}).status_code == 302
    client.get("/api/agents", headers={"Authorization": f"Bearer {key}"})
    client.get("/api/agents", headers={"Authorization": f"Bearer {key[:-3]}xyz"})
    page = client.get("/settings/keys/").content.decode()
    for secret in ("a canary of a password", "a canary of a wrong one", key):
        assert secret not in everything_stored()
        assert secret not in logged.getvalue()
        assert secret not in page
    assert key.endswith(ApiKey.objects.get().last_four)


def test_a_fault_of_ours_shows_nobody_its_traceback_or_settings(
    client: Client, logged: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialogs.views import dialogs

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("Authorization: Bearer " + CANARY)

    monkeypatch.setattr(dialogs, "ListFilter", broken)
    client.raise_request_exception = False
    client.force_login(UserFactory.create())
    answer = client.get("/dialogs/")
    assert answer.status_code == 500
    for inner in (CANARY, "Traceback", "ValueError", "SECRET_KEY", "dialogs/views"):
        assert inner not in answer.content.decode()
    assert "ValueError" in logged.getvalue()
    assert CANARY not in logged.getvalue()
