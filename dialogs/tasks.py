"""Celery's entry points: they only wake. The database says what there is to do."""

from threading import Thread
from typing import Any
from uuid import UUID

import structlog
from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.db import DatabaseError, connections

from dialogs.driver import drive
from dialogs.leases import keeper
from dialogs.model_limits import models_in_use
from dominds import garbage
from dominds.llm.connect import load_sdks

log = structlog.get_logger(__name__)


@shared_task(name="dialogs.drive_dialog")
def drive_dialog(dialog_id: str) -> None:
    """Drive one dialog. May be lost, late or delivered twice without harm."""
    try:
        drive(UUID(dialog_id))
    finally:
        connections.close_all()


@worker_ready.connect(weak=False)
def load(**_: Any) -> None:
    """Beside the first tasks, not before them."""
    Thread(target=_load, name="loading", daemon=True).start()


def _load() -> None:
    try:
        load_sdks(models_in_use())
    except DatabaseError as error:
        log.warning("sdks_not_loaded_early", error=str(error))
    finally:
        connections.close_all()
        garbage.settle()


@worker_shutting_down.connect(weak=False)
def let_go(**_: Any) -> None:
    """A worker that was asked to go hands its dialogs on at once (faults C13)."""
    keeper.drain()
