"""Addresses that lead nowhere are refused with a sentence, and no traceback."""

import asyncio
from typing import Any

import pytest

from dominds.asgi import application

pytestmark = pytest.mark.django_db


def asked(kind: str, path: str) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    incoming = [{"type": "http.request", "body": b""}] if kind == "http" else [{"type": "websocket.connect"}]
    headers = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1")]
    scope = {
        "type": kind,
        "path": path,
        "raw_path": b"",
        "query_string": b"",
        "headers": headers,
        "method": "GET",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
    }

    async def receive() -> dict[str, Any]:
        while not incoming:
            await asyncio.sleep(1)
        return incoming.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(asyncio.wait_for(application(scope, receive, send), 20))
    return sent


@pytest.mark.parametrize(
    "path", ["/d/\ud800/", "/\udcff", "/api/\ud800", "/v1/\ud800", "/static/\ud800", "/models/connected/\x00/"]
)
def test_what_no_address_can_hold_is_refused(path: str) -> None:
    assert asked("http", path)[0]["status"] == 400


@pytest.mark.parametrize("path", ["/ws/nothing/", "/ws/dialogs/\ud800/"])
def test_an_unknown_socket_path_is_closed_as_not_found(path: str) -> None:
    assert asked("websocket", path) == [{"type": "websocket.close", "code": 4404}]
