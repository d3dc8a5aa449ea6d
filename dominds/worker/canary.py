"""A worker's canary: a worker that no longer receives messages ends itself, so that the supervisor starts another.

In several releases of Celery, workers went deaf after a restart of the broker (celery#8030, #10205): they live and
answer pings, but consume nothing. So each worker sends itself a message every ten seconds, by the broker, to its own
queue.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger(__name__)

EVERY_SECONDS = 10.0
MAX_UNHEARD = 6  # lost messages in a row, about a minute
EXIT_CODE = 75  # EX_TEMPFAIL of <sysexits.h>


@dataclass
class Canary:
    """A count of the messages that a worker has sent to itself and not received.

    Messages are counted instead of seconds, so that a machine that slept or a process that was paused does not count as
    deaf. ``send`` raises while the broker is unavailable; then the count restarts, since Celery reconnects by itself.
    ``full`` tells whether the worker holds as many messages as it may, and so is right to take no more.
    """

    send: Callable[[], object]
    full: Callable[[], bool]
    end: Callable[[int], object] = os._exit  # sys.exit would end only this thread
    every_seconds: float = EVERY_SECONDS
    unheard: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Watch in a thread until ``stop``."""
        threading.Thread(target=self._watch, name="canary", daemon=True).start()

    def stop(self) -> None:
        """Stop watching. A worker that shuts down stops receiving on purpose."""
        self._stopping.set()

    def note_received(self) -> None:
        """Note that the worker received a message. Any message shows that it is not deaf."""
        self.unheard = 0

    def _watch(self) -> None:
        while not self._stopping.wait(self.every_seconds):
            self.check()

    def check(self) -> None:
        """End the worker if it is deaf. Otherwise send the next message."""
        if self.unheard >= MAX_UNHEARD and not self.full():
            log.critical("worker_is_deaf", unheard=self.unheard, next="ending, to be started again")
            self.end(EXIT_CODE)
        try:
            self.send()
            self.unheard += 1
        except Exception as error:  # noqa: BLE001  any error of the broker's client means that nothing was sent
            self.unheard = 0
            log.warning("canary_not_sent", error=str(error))
