"""First-in, first-out lock."""

import threading
from collections import deque


class Turns:
    """A lock that is given to whoever has waited longest."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def take(self, seconds: float) -> bool:
        """Wait for one's turn, at most this long; whether it came."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=seconds):
            return True
        with self._guard:
            if mine not in self._waiting:
                return True  # it came just now
            self._waiting.remove(mine)
        return False

    def give_back(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
