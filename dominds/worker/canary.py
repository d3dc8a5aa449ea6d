"""A worker's canary: a worker that no longer hears its queue ends itself, so that the supervisor starts another.

In several releases Celery workers have gone deaf after a restart of the broker (celery#8030, #10205): they live, answer
pings and consume nothing. So each worker sends itself a message every ten seconds, through the broker, to a queue of
its own.
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
    """A count of messages to itself that a worker has sent and not heard.

    Counting messages instead of seconds keeps a machine that slept, or a process that was paused, from passing for
    deaf. ``send`` raises while the broker is unavailable: then nothing can be heard, and reconnecting is Celery's
    business. ``full`` says that the worker has as many messages waiting as it may hold, and so rightly takes no more.
    """

    send: Callable[[], object]
    full: Callable[[], bool]
    end: Callable[[int], object] = os._exit  # sys.exit would end this thread alone
    every_seconds: float = EVERY_SECONDS
    unheard: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Watch in a thread until ``stop``."""
        threading.Thread(target=self._watch, name="canary", daemon=True).start()

    def stop(self) -> None:
        """Stop watching, since a worker that shuts down stops listening on purpose."""
        self._stopping.set()

    def note_received(self) -> None:
        """Note that this worker listens, which any message from its queue shows."""
        self.unheard = 0

    def _watch(self) -> None:
        while not self._stopping.wait(self.every_seconds):
            self.check()

    def check(self) -> None:
        """End the worker if it is deaf, or else send the next message."""
        if self.unheard >= MAX_UNHEARD and not self.full():
            log.critical("worker_is_deaf", unheard=self.unheard, next="ending, to be started again")
            self.end(EXIT_CODE)
        try:
            self.send()
            self.unheard += 1
        except Exception as error:  # noqa: BLE001  whatever the broker's client raises, it means: not sent
            self.unheard = 0
            log.warning("canary_not_sent", error=str(error))
