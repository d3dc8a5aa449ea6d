"""Celery's entry points: they only wake. The database says what there is to do."""

from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.db import connections

from dialogs import loading, poke
from dialogs.driver import drive
from dialogs.leases import keeper
from dominds import early


@shared_task(name=poke.DRIVE)
def drive_dialog(dialog_id: str) -> None:
    """Drive one dialog. May be lost, late or delivered twice without harm."""
    try:
        drive(UUID(dialog_id))
    finally:
        connections.close_all()


@worker_ready.connect(weak=False)
def load(**_: Any) -> None:
    """Beside the first tasks, not before them."""
    early.begin(loading.for_calls)


@worker_shutting_down.connect(weak=False)
def let_go(**_: Any) -> None:
    """A worker that was asked to go hands its dialogs on at once (faults C13)."""
    keeper.drain()
