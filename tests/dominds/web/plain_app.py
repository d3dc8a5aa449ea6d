"""An ASGI application without a framework, as Daphne serves ours: answers each request with the length of its body.

A socket is sent 4 MB, then a message every ten milliseconds, until it is gone. ``/failures`` counts what that raised.
"""

import asyncio
from typing import Any

from dominds.web import daphne_patch

failures: list[Exception] = []


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send_until_gone(receive, send)
        return
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    text = str(len(failures) if scope["path"] == "/failures" else length).encode()
    head = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": text})


async def send_until_gone(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    gone = asyncio.create_task(receive())
    try:
        await send({"type": "websocket.send", "text": 4_000_000 * "a"})
        while not gone.done():
            await asyncio.sleep(0.01)
            await send({"type": "websocket.send", "text": "a"})
    except RuntimeError as error:
        failures.append(error)


daphne_patch.patch_receiving()
daphne_patch.patch_sending()
