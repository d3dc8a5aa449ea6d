"""The Celery application: ``celery -A dominds.celery worker --pool threads``.

Celery only delivers wake-ups. A lost, late or duplicate one does no harm, so messages are acknowledged early, nothing
is retried forever, and there is no result backend.
"""

import logging.config
import os
import warnings
from typing import Any

# Set before the app is made, since this makes Celery use its support for Django, which closes connections after a task.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
# A worker would run Django's checks at its start, which load every page and take a fifth of the time. `prepare` checks
# the installation instead.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from celery import Celery
from celery.signals import setup_logging, task_received, worker_init, worker_ready, worker_shutting_down
from celery.utils.nodenames import worker_direct
from celery.worker import state
from django.conf import settings

from dominds import gc_tuning, telemetry, waits
from dominds.llm.circuit_breaker import circuits
from dominds.local import gate
from dominds.worker import heartbeats
from dominds.worker.canary import EVERY_SECONDS, Canary

# Celery warns root because of pickle, which is refused below. In a container every process is root.
warnings.filterwarnings("ignore", message="You're running the worker with superuser")

app = Celery("dominds", set_as_current=True)
app.set_default()  # ``set_as_current`` affects only this thread, but other threads send wake-ups
app.conf.update(
    broker_url=settings.REDIS_URL,
    broker_transport="dominds.worker.redis_transport:Transport",
    result_backend=None,
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_serializer="json",
    accept_content=["json"],
    # Celery has no time-outs by default, so that a frozen Redis would block a web thread forever. In seconds.
    broker_transport_options={
        "socket_timeout": 3,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        "socket_keepalive_options": waits.keepalive_options(),
        "health_check_interval": 10,
    },
    broker_connection_timeout=2,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # A second try succeeds if a restarted Redis had closed the connection. Otherwise the sweeper sends the wake-up.
    task_publish_retry=True,
    task_publish_retry_policy={"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0},
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    worker_direct=True,  # gives each worker a queue for its canary
    timezone="UTC",
)
app.autodiscover_tasks(["dialogs", *settings.EXTRAS])


@app.task(name="dominds.worker.canary")
def canary() -> None:
    """Do nothing. The arrival of this task shows that the worker listens, see ``dominds.worker.canary``."""


@worker_ready.connect
def watch_for_deafness(sender: Any, **_: Any) -> None:
    """Start the worker's canary."""
    queue = worker_direct(sender.hostname)

    def beat() -> None:
        busy = len(state.active_requests)
        waiting = len(state.reserved_requests) - busy
        open_circuits = [str(circuit) for circuit in circuits.open_circuits()]
        heartbeats.beat(
            "worker", sender.hostname, busy=busy, waiting=waiting, unheard=watch.unheard, open_circuits=open_circuits
        )

    def send() -> None:
        beat()
        canary.apply_async(queue=queue, expires=EVERY_SECONDS * 2)

    def full() -> bool:
        waiting = len(state.reserved_requests) - len(state.active_requests)
        return bool(waiting >= sender.qos.value)

    watch = Canary(send, full)
    task_received.connect(lambda **_: watch.note_received(), weak=False)

    def leave(**_: Any) -> None:
        watch.stop()
        heartbeats.leave(sender.hostname)

    worker_shutting_down.connect(leave, weak=False)
    watch.start()
    beat()
    gc_tuning.settle()


@worker_init.connect
def start_telemetry(**_: Any) -> None:
    """Start telemetry in a worker, and wait until the database is prepared."""
    telemetry.start("dominds-worker")
    gate.pass_through()  # after all tasks are loaded


@setup_logging.connect
def use_django_logging(**_: Any) -> None:
    """Log in the same format as the web process, instead of Celery's."""
    logging.config.dictConfig(settings.LOGGING)
