"""A semaphore that serves whoever has waited longest."""

import threading
from collections import deque


class FairSemaphore:
    """Places for threads, handed over in the order of waiting, with a line for threads that may go first."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()  # a place is handed over by releasing one of these locks
        self._going_before: deque[threading.Lock] = deque()

    @property
    def free(self) -> int:
        return self._free

    def take(self, seconds: float = -1, *, before_others: bool = False) -> bool:
        """Wait for a place, at most this long (-1: forever), and return whether there was one."""
        line = self._going_before if before_others else self._waiting
        with self._guard:
            if self._free:  # then nobody waits
                self._free -= 1
                return True
            mine = threading.Lock()
            mine.acquire()
            line.append(mine)
        if mine.acquire(timeout=seconds):
            return True
        with self._guard:
            if mine not in line:
                return True  # it came just now
            line.remove(mine)
        return False

    def give_back(self) -> None:
        with self._guard:
            if line := self._going_before or self._waiting:
                line.popleft().release()
            else:
                self._free += 1
