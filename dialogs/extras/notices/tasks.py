"""Celery's task for notices. It only wakes; the database says what has to be done."""

from celery import shared_task
from django.db import connections

from dialogs.extras.notices import deliveries
from dialogs.store import wakeups


@shared_task(name=wakeups.DELIVER)
def deliver_notice(delivery_id: int) -> None:
    """Send one notice. The task may be lost, late or doubled without harm."""
    try:
        deliveries.deliver(delivery_id)
    finally:
        connections.close_all()
