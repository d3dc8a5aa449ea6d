"""A weighted LRU cache, one per process."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Bounded(Generic[Value]):
    """The most recently used values. Each has a weight, and all of them together weigh no more than ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._known: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            found = self._known.get(key)
            if found is None:
                return None
            self._known.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Value, weight: int) -> None:
        with self._lock:
            self._forget(key)
            self._known[key] = value, weight
            self._weight += weight
            while self._weight > self._most:
                self._forget(next(iter(self._known)))

    def _forget(self, key: Hashable) -> None:
        _, weight = self._known.pop(key, (None, 0))
        self._weight -= weight
