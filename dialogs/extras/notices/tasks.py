"""The entry point of Celery. It only wakes; the database says what is to be done."""

from celery import shared_task
from django.db import connections

from dialogs.extras.notices import deliveries
from dialogs.store import wakeups


@shared_task(name=wakeups.DELIVER)
def deliver_notice(delivery_id: int) -> None:
    """Send one notice. May be lost, late or delivered twice without harm."""
    try:
        deliveries.deliver(delivery_id)
    finally:
        connections.close_all()
