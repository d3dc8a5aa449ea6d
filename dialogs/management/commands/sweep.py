import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from dialogs.operations import sweeping
from dominds.local.reachable import require_servers


class Command(BaseCommand):
    help = (
        "Wake dialogs whose wake-up was lost or whose worker vanished, and send notices that are due, every 5 "
        "seconds. Several may run."
    )

    requires_system_checks = ()  # they would load every page; `prepare` checks

    def handle(self, *args: Any, **options: Any) -> None:
        require_servers()
        ending = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ending.set())
        sweeping.run(ending)
