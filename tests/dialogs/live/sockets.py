"""Sockets as pages open them, for the tests of this room."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import orjson
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from dialogs.actions import messages
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from dominds.asgi import application
from tests.harness.browser import session_key

Frame = dict[str, Any]
PATIENCE_SECONDS = 8


def go(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on an event loop of its own."""
    asyncio.run(asyncio.wait_for(scenario(), 60))


async def rows(function: Callable[..., Any], *arguments: Any) -> Any:
    """Database work beside the loop; its thread gives the connection back."""

    def work() -> Any:
        try:
            return function(*arguments)
        finally:
            connection.close()

    return await asyncio.to_thread(work)


def socket(path: str, user: User | None, origin: str = "http://127.0.0.1", key: str = "") -> WebsocketCommunicator:
    cookie = f"{settings.SESSION_COOKIE_NAME}={key or session_key(user)}" if user or key else ""
    headers = [(b"host", b"127.0.0.1"), (b"origin", origin.encode()), (b"cookie", cookie.encode())]
    return WebsocketCommunicator(application, path, headers=headers)


@asynccontextmanager
async def listening(path: str, user: User) -> AsyncIterator[WebsocketCommunicator]:
    page = await rows(socket, path, user)
    connected, _ = await page.connect(timeout=PATIENCE_SECONDS)
    assert connected
    try:
        yield page
    finally:
        await page.disconnect(timeout=PATIENCE_SECONDS)


async def frames_until(page: WebsocketCommunicator, wanted: Callable[[Frame], bool]) -> list[Frame]:
    """Everything that arrives up to the first frame that is wanted; acknowledges as a page does."""
    seen: list[Frame] = []
    while not seen or not wanted(seen[-1]):
        frame = orjson.loads(await page.receive_from(timeout=PATIENCE_SECONDS))
        if frame["type"] == "ping":
            await page.send_to(text_data=orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
        else:
            seen.append(frame)
    return seen


def path_of(dialog: Dialog, after: int = 0) -> str:
    return f"/ws/dialogs/{dialog.pk}/?after={after}"


def is_state(state: str) -> Callable[[Frame], bool]:
    return lambda frame: frame["type"] == "state" and frame["data"]["state"] == state


def events_of(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if "seq" in frame]


def answer(dialog: Dialog, text: str = "Hi") -> None:
    messages.post_message(dialog.pk, text)
    drive(dialog.pk)
