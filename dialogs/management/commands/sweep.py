import signal
import threading
from typing import Any

import structlog
from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections

from dialogs.operations.sweeping import SWEEP_SECONDS, notify, sweep, tidy
from dominds.worker import heartbeats

log = structlog.get_logger(__name__)

TIDY_EVERY = 3600 // SWEEP_SECONDS


class Command(BaseCommand):
    help = "Wake dialogs whose wake-up was lost or whose worker vanished, and send notices that are due, every 5 seconds. Several may run."

    requires_system_checks = ()  # they would load every page; `up` and `prepare` check
    stealth_options = ("ending",)

    def handle(self, *args: Any, ending: threading.Event | None = None, **options: Any) -> None:
        """Sweep until ``ending`` is set; without it, until a signal asks."""
        if ending is None:
            ending = asked_to_end = threading.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: asked_to_end.set())
        rounds, name = 0, heartbeats.part_name("sweeper")
        while not ending.wait(SWEEP_SECONDS):
            heartbeats.beat("sweeper", name)
            try:
                sweep()
                notify()
                if rounds % TIDY_EVERY == 0:
                    tidy()
            except DatabaseError as error:
                log.warning("sweep_failed", error=str(error))
            close_old_connections()
            rounds += 1
        heartbeats.leave(name)
