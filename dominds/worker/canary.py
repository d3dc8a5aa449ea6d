"""Canary of a worker: one that no longer hears its queue ends, so that the supervisor starts another.

Celery workers have gone deaf after a broker restart in several releases (celery#8030, #10205): they live, answer pings
and consume nothing. So each worker sends itself a message every ten seconds, over the broker, to a queue of its own.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger(__name__)

EVERY_SECONDS = 10.0
MAX_UNHEARD = 6  # messages in a row: about a minute
EXIT_CODE = 75  # EX_TEMPFAIL of <sysexits.h>


@dataclass
class Canary:
    """Counts messages to itself that were sent and not heard.

    It counts messages and not seconds, so that a machine that slept or a process that was paused is not taken for deaf.
    ``send`` raises when the broker is unavailable: then nothing can be heard, and reconnecting is Celery's business.
    ``full`` says that the worker has as many messages waiting as it may take: then it rightly takes no more.
    """

    send: Callable[[], object]
    full: Callable[[], bool]
    end: Callable[[int], object] = os._exit  # not sys.exit: a thread cannot end the others
    every_seconds: float = EVERY_SECONDS
    unheard: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Watch from a thread of its own, until ``stop``."""
        threading.Thread(target=self._watch, name="canary", daemon=True).start()

    def stop(self) -> None:
        """Stop watching, since a worker that shuts down stops listening on purpose."""
        self._stopping.set()

    def note_received(self) -> None:
        """Note that this worker listens, as any message from the queue shows."""
        self.unheard = 0

    def _watch(self) -> None:
        while not self._stopping.wait(self.every_seconds):
            self.check()

    def check(self) -> None:
        """End the worker if it is deaf, else send the next message."""
        if self.unheard >= MAX_UNHEARD and not self.full():
            log.critical("worker_is_deaf", unheard=self.unheard, next="ending, to be started again")
            self.end(EXIT_CODE)
        try:
            self.send()
            self.unheard += 1
        except Exception as error:  # noqa: BLE001  whatever the broker's client raises, it means: not sent
            self.unheard = 0
            log.warning("canary_not_sent", error=str(error))
