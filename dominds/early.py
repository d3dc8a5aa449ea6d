"""Loads beside a process's first calls what somebody's first answer would otherwise wait for."""

from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any

import structlog
from django.db import DatabaseError, connections

from dominds import garbage

log = structlog.get_logger(__name__)

Application = Callable[[Any, Any, Any], Awaitable[None]]


def begin(load: Callable[[], None]) -> None:
    """Start ``load`` in a thread. Without a database it is done when it is needed."""
    Thread(target=_run, args=(load,), name="loading", daemon=True).start()


def loading(application: Application, load: Callable[[], None]) -> Application:
    """The same ASGI application. Its first call begins ``load``: servers tell of no other beginning."""
    begun = False

    async def call(scope: Any, receive: Any, send: Any) -> None:
        nonlocal begun
        if not begun:
            begun = True
            begin(load)
        await application(scope, receive, send)

    return call


def _run(load: Callable[[], None]) -> None:
    try:
        load()
    except DatabaseError as error:
        log.warning("not_loaded_early", error=str(error))
    finally:
        connections.close_all()
        garbage.settle()
