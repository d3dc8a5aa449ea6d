"""How many sockets may be on their way in at once.

After a restart all pages come back within seconds. Taken in together they all took longer than a browser waits for a
handshake (ten seconds), so they left, came again, and a server that was busy with those who had left took in nobody: of
2,000 pages 195 were back after three minutes. A connection that would wait too long is therefore refused soon, and tries again later.
"""

import asyncio
from typing import Any

from dominds.web.startup import Application

AT_ONCE = 16
PATIENCE_SECONDS = 2.0  # far less than the ten seconds of socket.js
TRY_LATER = 1013


def admitted(application: Application) -> Application:
    """The same ASGI application for sockets, of which so many at once are asked who they are."""
    places = asyncio.Semaphore(AT_ONCE)

    async def call(scope: Any, receive: Any, send: Any) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await places.acquire()
        except TimeoutError:
            await send({"type": "websocket.close", "code": TRY_LATER})
            return
        at_the_door = True

        def go_in() -> None:
            nonlocal at_the_door
            if at_the_door:
                at_the_door = False
                places.release()

        async def tell(message: Any) -> None:
            await send(message)
            go_in()  # accepted, or sent away

        try:
            await application(scope, receive, tell)
        finally:
            go_in()

    return call
