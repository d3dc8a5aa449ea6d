"""Hosts that swallow SYN: whoever asks one knows within 15 seconds that it accepts no connection."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connections
from django.db.utils import ConnectionHandler
from django.test import override_settings

from dialogs.actions import messages
from dialogs.extras.notices import webhook
from dialogs.live.hub import Hub
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from dialogs.store import wakeups
from dialogs.tools import mcp_client
from dialogs.tools.mcp_config import Server
from dominds import outbound_http
from dominds.celery import app
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.providers import lmstudio
from dominds.settings import POSTGRESQL_OPTIONS
from dominds.worker import heartbeats
from tests.dialogs.factories import make_dialog
from tests.dominds.llm.asking import ask, chat_at
from tests.harness.live import close_pool
from tests.harness.silent_host import silent_port

MOST_SECONDS = 15
Asked = dict[str, "Future[tuple[float, str]]"]


def timed(work: Callable[[], Any]) -> tuple[float, str]:
    """How long it took, and what was said at the end."""
    begun_at = time.monotonic()
    try:
        text = str(work())
    except Exception as error:  # noqa: BLE001 - each asks with a library of its own
        text = f"{type(error).__name__}: {error}"
    return time.monotonic() - begun_at, text


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with silent_port() as port:
        yield port


@pytest.fixture(scope="module")
def asked(port: int) -> Iterator[Asked]:
    """All at once: each of them only waits."""
    url = f"http://127.0.0.1:{port}/v1"
    database = {**connections.settings["default"], "HOST": "127.0.0.1", "PORT": str(port)}
    with override_settings(REDIS_URL=f"redis://127.0.0.1:{port}/0"):  # clients connect later
        waker, beater, hub = wakeups.client.__wrapped__(), heartbeats._client(), Hub()
    broker = app.connection_for_write(f"redis://127.0.0.1:{port}/0")
    work: dict[str, Callable[[], Any]] = {
        "a model": lambda: ask(chat_at(Endpoint(url))),
        "a local server's list": lambda: lmstudio.loaded_limit(url, "m"),
        "a tool server": lambda: mcp_client.list_tools(Server("gone", url=url)),
        "a webhook": lambda: outbound_http.post(
            url, b"", {}, timeout_seconds=webhook.TIMEOUT_SECONDS, allow_private=True
        ),
        "Redis, to wake": waker.ping,
        "Redis, to count": beater.ping,
        "Redis, to listen": lambda: asyncio.run(_ping(hub)),
        "the broker": lambda: app.send_task("nothing", connection=broker),
        "PostgreSQL": lambda: _open(database | {"OPTIONS": POSTGRESQL_OPTIONS}),
    }
    with ThreadPoolExecutor(len(work)) as threads:
        yield {name: threads.submit(timed, each) for name, each in work.items()}


async def _ping(hub: Hub) -> None:
    await hub.redis.ping()


def _open(database: dict[str, Any]) -> None:
    opened = ConnectionHandler({"default": {}, "silent": database})["silent"]  # pools are shared by their names
    try:
        opened.connect()
    finally:
        close_pool(opened)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a model", "did not accept a connection within 10 s"),
        ("a local server's list", "No answer from LM Studio at"),
        ("a tool server", "cannot be reached: it did not accept a connection within 10 seconds"),
        ("a webhook", "timed out"),
        ("Redis, to wake", "Timeout connecting to server"),
        ("Redis, to count", "Timeout connecting to server"),
        ("Redis, to listen", "Timeout connecting to server"),
        ("the broker", "Timeout connecting to server"),
        ("PostgreSQL", "couldn't get a connection after 5.00 sec"),
    ],
)
def test_who_asks_it_is_told(asked: Asked, name: str, says: str) -> None:
    seconds, text = asked[name].result()
    assert says in text
    assert seconds < MOST_SECONDS


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_redis", "asked")  # the others wait meanwhile
def test_a_dialog_says_so(tmp_path: Path, settings: Any, port: int) -> None:
    """Where the model's window must be asked for, no message is taken; elsewhere the message fails."""
    settings.MINDS_DIR = tmp_path
    server = {"baseUrl": f"http://127.0.0.1:{port}/v1"}
    providers = {
        "local": {**server, "name": "Local", "apiType": "lmstudio", "models": {"m": {"name": "M"}}},
        "far": {**server, "name": "Far", "apiType": "openai-compatible", "models": {"m": {"context_length": 8_000}}},
    }
    (tmp_path / "llm.yaml").write_text(yaml.safe_dump({"providers": providers}))
    local, far = (make_dialog(provider=name, model="m").pk for name in ("local", "far"))
    seconds, text = timed(lambda: messages.post_message(local, "Hello"))
    assert "No answer from LM Studio at" in text
    assert seconds < MOST_SECONDS
    messages.post_message(far, "Hello")
    seconds, _ = timed(lambda: drive(far))
    failed = Dialog.objects.get(pk=far)
    assert (failed.state, failed.failure) == ("failed", f"127.0.0.1:{port} did not accept a connection within 10 s.")
    assert seconds < MOST_SECONDS
