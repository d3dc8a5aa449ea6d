"""Celery's tasks. They only wake; the database says what has to be done."""

from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings
from django.db import connections

from dialogs.context.retrieval.meanings import MEANINGS
from dialogs.runtime import sweeping
from dialogs.runtime.driver import drive
from dialogs.store import wakeups
from dialogs.store.lease import keeper
from dominds.worker.seats import seats


@shared_task(name=wakeups.DRIVE)
def drive_dialog(dialog_id: str) -> None:
    """Drive one dialog. The task may be lost, late or doubled without harm."""
    try:
        with seats.take():
            drive(UUID(dialog_id))
    finally:
        connections.close_all()


@worker_ready.connect(weak=False)
def sweep_beside(**_: Any) -> None:
    """Sweep in the worker's process. On one machine both may die together, since neither is of use alone."""
    if settings.SWEEPS:
        ending = sweeping.run_beside(settings.WORKER_BEFORE)
        worker_shutting_down.connect(lambda **_: ending.set(), weak=False)


@worker_ready.connect(weak=False)
def start_meanings(**_: Any) -> None:
    """Have this process make vectors for recall. It alone loads their model."""
    MEANINGS.start()


@worker_shutting_down.connect(weak=False)
def drain(**_: Any) -> None:
    """Hand a worker's dialogs on at once when it shuts down."""
    keeper.drain()
