"""Work at the start of a web process.

It begins at the first call of the ASGI application, since servers announce no earlier moment, and runs in a thread, so
that no answer has to wait for it.
"""

from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any

import structlog
from django.db import connections

from dominds import gc_tuning

log = structlog.get_logger(__name__)

Application = Callable[[Any, Any, Any], Awaitable[None]]


def at_first_call(application: Application, begin: Callable[[], None]) -> Application:
    """Wrap an application. Its first call runs ``begin`` on the loop, so ``begin`` must not wait for anything."""
    begun = False

    async def call(scope: Any, receive: Any, send: Any) -> None:
        nonlocal begun
        if not begun:
            begun = True
            begin()
        await application(scope, receive, send)

    return call


def warm_up(load: Callable[[], None]) -> None:
    """Run ``load`` in a thread. If it fails, as without a database, the first request that needs its result fails."""
    Thread(target=_run, args=(load,), name="loading", daemon=True).start()


def _run(load: Callable[[], None]) -> None:
    try:
        load()
    except Exception:  # the first request that needs the result reports the error
        log.warning("not_loaded_early", exc_info=True)
    finally:
        connections.close_all()
        gc_tuning.settle()
