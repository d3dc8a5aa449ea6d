"""Warm-up beside a process's first calls, of what somebody's first answer would otherwise wait for."""

from collections.abc import Callable
from threading import Thread

import structlog
from django.db import DatabaseError, connections

from dominds import gc_tuning

log = structlog.get_logger(__name__)


def begin(load: Callable[[], None]) -> None:
    """Start ``load`` in a thread. Without a database it is done when it is needed."""
    Thread(target=_run, args=(load,), name="loading", daemon=True).start()


def _run(load: Callable[[], None]) -> None:
    try:
        load()
    except DatabaseError as error:
        log.warning("not_loaded_early", error=str(error))
    finally:
        connections.close_all()
        gc_tuning.settle()
