"""How long each transaction is open, and how much of that this process spent computing."""

import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(frozen=True, slots=True)
class Transaction:
    """``computed`` is processor time of the thread that held it, which does not grow on a crowded machine."""

    where: str
    seconds: float
    computed: float


@contextmanager
def watched() -> Iterator[list[Transaction]]:
    """The transactions of all threads that end within the block, by the outermost ``atomic`` of each."""
    ended: list[Transaction] = []
    begun = threading.local()
    switch = BaseDatabaseWrapper.set_autocommit

    def set_autocommit(self: BaseDatabaseWrapper, autocommit: bool, *arguments: Any, **options: Any) -> None:
        if autocommit and (start := getattr(begun, "start", None)) is not None:
            at, cpu, where = start
            begun.start = None
            ended.append(Transaction(where, time.monotonic() - at, time.thread_time() - cpu))
        switch(self, autocommit, *arguments, **options)
        if not autocommit:
            begun.start = (time.monotonic(), time.thread_time(), _caller())

    with patch.object(BaseDatabaseWrapper, "set_autocommit", set_autocommit):  # Django's, not ours
        yield ended


def _caller() -> str:
    """The innermost lines of the product."""
    ours = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_stack(limit=30)
        if "/dialogs/" in frame.filename and "site-packages" not in frame.filename
    ]
    return " < ".join(reversed(ours[-4:])) or "elsewhere"
