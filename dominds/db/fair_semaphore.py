"""A semaphore whose waiting threads are served in order."""

import threading
from collections import deque


class FairSemaphore:
    """A semaphore for threads, which get places in the order of arrival. A second line goes before the first."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()  # a place is handed over by releasing one of these locks
        self._going_before: deque[threading.Lock] = deque()

    @property
    def free(self) -> int:
        return self._free

    def take(self, seconds: float = -1, *, before_others: bool = False) -> bool:
        """Wait for a place, at most so many seconds (-1: forever), and return whether there was one."""
        line = self._going_before if before_others else self._waiting
        with self._guard:
            if self._free:  # a place is only free while no thread waits
                self._free -= 1
                return True
            mine = threading.Lock()
            mine.acquire()
            line.append(mine)
        if mine.acquire(timeout=seconds):
            return True
        with self._guard:
            if mine not in line:
                return True  # the place was handed over after the time-out
            line.remove(mine)
        return False

    def give_back(self) -> None:
        with self._guard:
            if line := self._going_before or self._waiting:
                line.popleft().release()
            else:
                self._free += 1
