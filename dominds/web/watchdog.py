"""A watchdog for the event loop of a web process: it logs that the loop is blocked, and where.

It does not end the process. A loop that goes on has lost no connection, and ``/livez`` reveals one that never does.
"""

import asyncio
import sys
import threading
import time
import traceback

import structlog
from prometheus_client import Counter

from dominds.web.startup import Application, at_first_call

log = structlog.get_logger(__name__)

STILL_SECONDS = 1.0
POLL_SECONDS = 0.25

still = Counter(
    "dominds_event_loop_stalls", f"Times that this process's event loop stood still for {STILL_SECONDS:g} s."
)


def watch(application: Application) -> Application:
    """Wrap an ASGI application. Its first call starts the watchdog, since the event loop is not known before."""
    return at_first_call(application, lambda: Watchdog(asyncio.get_running_loop(), threading.get_ident()).start())


class Watchdog:
    """A thread that asks the event loop four times a second to set an event, and checks whether it does.

    If the process is frozen or gets no processor, the loop is not blocked, and this thread does not run either. So only
    the time counts in which this thread was awake or the process was busy, as in a C call that blocks all threads.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        self._loop, self._thread = loop, thread
        self._answered = threading.Event()
        self._answered.set()
        self._at, self._busy = 0.0, 0.0

    def start(self) -> None:
        """Watch until the loop stops."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def _watch(self) -> None:
        self._counted_seconds()
        seconds, is_reported = 0.0, False  # since the loop was asked
        while not self._answered.is_set() or self._ask():
            time.sleep(POLL_SECONDS)
            if not self._loop.is_running():  # Twisted never closes its loop, and a process waits for its threads to end
                return
            passed = self._counted_seconds()
            seconds += passed
            silent = seconds >= STILL_SECONDS and not self._answered.is_set()
            if (silent or passed >= STILL_SECONDS) and not is_reported:
                is_reported = True
                still.inc()
                log.warning("event_loop_stands_still", seconds=round(seconds, 1), stack=self._stack())
            if self._answered.is_set():
                if is_reported:
                    log.warning("event_loop_goes_on", seconds=round(seconds, 1))
                seconds, is_reported = 0.0, False

    def _ask(self) -> bool:
        self._answered.clear()
        try:
            self._loop.call_soon_threadsafe(self._answered.set)
        except RuntimeError:  # closed
            return False
        return True

    def _counted_seconds(self) -> float:
        """Return the seconds since the last call that count, see the class."""
        at, busy = time.monotonic(), time.process_time()
        passed, worked = at - self._at, busy - self._busy
        self._at, self._busy = at, busy
        return min(passed, max(2 * POLL_SECONDS, worked))

    def _stack(self) -> str:
        """Return the stack of the loop's thread, innermost call last."""
        frame = sys._current_frames().get(self._thread)
        return "".join(traceback.format_stack(frame)) if frame else "(its thread has ended)"
