"""How many dialogs a worker works on at once. One whose model talks has given its seat back, so many more may wait for answers."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

AT_WORK = 64  # each may need a connection to the database, and all share one interpreter


class Seats:
    """Seats of threads. Whoever comes back to one goes before those who have not begun."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._lock = threading.Lock()
        self._returning: deque[threading.Lock] = (
            deque()
        )  # locks of threads that wait; a seat is handed over by releasing one
        self._coming: deque[threading.Lock] = deque()
        self._mine = threading.local()

    @property
    def free(self) -> int:
        return self._free

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a seat, once there is one."""
        self._take(self._coming)
        self._mine.seated = True
        try:
            yield
        finally:
            self._mine.seated = False
            self._give()

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Let somebody else have this thread's seat while the block waits. Threads without one just wait."""
        if not getattr(self._mine, "seated", False):
            yield
            return
        self._give()
        try:
            yield
        finally:
            self._take(self._returning)

    def _take(self, line: deque[threading.Lock]) -> None:
        with self._lock:
            if self._free:  # then nobody waits
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            line.append(turn)
        turn.acquire()

    def _give(self) -> None:
        with self._lock:
            if line := self._returning or self._coming:
                line.popleft().release()
            else:
                self._free += 1


seats = Seats(AT_WORK)
