"""An ASGI application without a framework, as Daphne serves ours: answers each request with the length of its body."""

from typing import Any

from dominds.web import daphne_patch


async def application(scope: Any, receive: Any, send: Any) -> None:
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    text = str(length).encode()
    head = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": text})


daphne_patch.patch_receiving()
