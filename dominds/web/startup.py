"""Start-up work on the first call of an ASGI application: no server announces an earlier moment."""

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]


def at_first_call(application: Application, begin: Callable[[], None]) -> Application:
    """The same application. Its first call runs ``begin`` on the loop, which must not wait for anything."""
    begun = False

    async def call(scope: Any, receive: Any, send: Any) -> None:
        nonlocal begun
        if not begun:
            begun = True
            begin()
        await application(scope, receive, send)

    return call
