"""Seats, which limit how many dialogs a worker works on at once.

A dialog that waits for its model gives its seat back, so that many more dialogs can wait for answers.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dominds.db.fair_semaphore import FairSemaphore

AT_WORK = 64  # each thread may need a connection to the database, and all share one interpreter


class Seats:
    """Seats for threads. A thread that returns to its seat goes before threads that have not begun."""

    def __init__(self, number: int) -> None:
        self._places = FairSemaphore(number)
        self._mine = threading.local()

    @property
    def free(self) -> int:
        return self._places.free

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a seat, and hold it during the block."""
        self._places.take()
        self._mine.seated = True
        try:
            yield
        finally:
            self._mine.seated = False
            self._places.give_back()

    @contextmanager
    def without_seat(self) -> Iterator[None]:
        """Give this thread's seat to another thread while the block waits. A thread without a seat just runs it."""
        if not getattr(self._mine, "seated", False):
            yield
            return
        self._places.give_back()
        try:
            yield
        finally:
            self._places.take(before_others=True)


seats = Seats(AT_WORK)
