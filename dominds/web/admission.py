"""A bound on concurrent socket handshakes.

After a restart all pages reconnect within seconds. Without a bound, each handshake took longer than a browser waits for
it (ten seconds), so that pages gave up and tried again while the server worked on handshakes that had been given up: of
2,000 pages, 195 were back after three minutes. So a connection that would wait too long is refused soon, and tries
again later.
"""

import asyncio
from typing import Any

from dominds.web.startup import Application

AT_ONCE = 16
PATIENCE_SECONDS = 2.0  # far less than the ten seconds of socket.js
TRY_LATER = 1013


def admit(application: Application) -> Application:
    """Wrap an ASGI application for sockets, with a bound on concurrent handshakes."""
    places = asyncio.Semaphore(AT_ONCE)

    async def call(scope: Any, receive: Any, send: Any) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await places.acquire()
        except TimeoutError:
            await send({"type": "websocket.close", "code": TRY_LATER})
            return
        has_place = True

        def give_back() -> None:
            nonlocal has_place
            if has_place:
                has_place = False
                places.release()

        async def forward(message: Any) -> None:
            await send(message)
            give_back()  # the first message accepts or closes the socket, which ends the handshake

        try:
            await application(scope, receive, forward)
        finally:
            give_back()

    return call
