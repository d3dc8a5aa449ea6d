"""Work at the start of a web process: on the first call of an ASGI application, since no server announces an earlier
moment, and beside the first calls, so that nobody's first answer has to wait for it."""

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
    """Run ``load`` in a thread. A failure, as without a database, is reported to the first who needs the result."""
    Thread(target=_run, args=(load,), name="loading", daemon=True).start()


def _run(load: Callable[[], None]) -> None:
    try:
        load()
    except Exception:  # whoever needs it next is told what is wrong
        log.warning("not_loaded_early", exc_info=True)
    finally:
        connections.close_all()
        gc_tuning.settle()
