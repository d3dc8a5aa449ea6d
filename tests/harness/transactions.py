"""How long each transaction is open, how much of that this process spent computing,
and what it must not do meanwhile."""

import asyncio
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import httpx2
from django.db.transaction import Atomic
from markdown_it import MarkdownIt
from redis.connection import AbstractConnection
from tiktoken import Encoding

from dialogs.context import package_draft

MOST_COMPUTED_SECONDS = 0.5  # the statements of a commit take less than two hundredths; its first may load modules

# At which a thread begins to wait for a server, to count tokens, to render or to search texts.
SLOW = {
    (httpx2.Client, "send"): "asked a server",
    (socket.socket, "connect"): "connected to a server",
    (AbstractConnection, "send_packed_command"): "asked Redis",
    (subprocess.Popen, "__init__"): "started a process",
    (time, "sleep"): "slept",
    (asyncio, "run_coroutine_threadsafe"): "waited for another thread",
    (Encoding, "encode_to_numpy"): "counted tokens",
    (MarkdownIt, "parse"): "rendered Markdown",
    (package_draft, "draft"): "drafted a package",
}


@dataclass(frozen=True, slots=True)
class Transaction:
    """``computed`` is processor time of the thread that held it, which does not grow on a crowded machine. ``slow``
    says what it did that has no place there, and where."""

    where: str
    seconds: float
    computed: float
    slow: tuple[str, ...]

    def is_wrong(self, most_computed: float = math.inf) -> bool:
        return bool(self.slow) or self.computed > most_computed


class _Held(threading.local):
    """What this thread holds open."""

    begun = (0.0, 0.0, "")
    slow: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.open: list[bool] = []  # whether the product opened it: what a test takes back as a whole does not count

    @property
    def is_open(self) -> bool:
        return any(self.open)


@contextmanager
def watched(note: Callable[[Transaction], None] | None = None) -> Iterator[list[Transaction]]:
    """The transactions of all threads that end within the block, by the outermost ``atomic`` of each that begins there.

    A process that lives long gives each to ``note``, and keeps none."""
    ended: list[Transaction] = []
    note = note or ended.append
    held = _Held()
    enter, leave = Atomic.__enter__, Atomic.__exit__

    def entered(self: Atomic) -> None:
        enter(self)
        was_open = held.is_open
        held.open.append("/tests/" not in sys._getframe(1).f_code.co_filename)
        if held.is_open and not was_open:
            held.begun, held.slow = (time.monotonic(), time.thread_time(), _caller()), ()

    def left(self: Atomic, *error: Any) -> None:
        was_open = held.is_open
        if held.open:
            held.open.pop()
        if was_open and not held.is_open:
            at, cpu, where = held.begun
            note(Transaction(where, time.monotonic() - at, time.thread_time() - cpu, held.slow))
        leave(self, *error)

    def noting(function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            if held.is_open:
                held.slow = (*held.slow, f"{what} in {_caller()}")
            return function(*arguments, **options)

        return noted

    with ExitStack() as patches:
        patches.enter_context(patch.object(Atomic, "__enter__", entered))
        patches.enter_context(patch.object(Atomic, "__exit__", left))
        for (owner, name), what in SLOW.items():
            patches.enter_context(patch.object(owner, name, noting(getattr(owner, name), what)))
        yield ended


@contextmanager
def nothing_slow_within(most_computed: float = math.inf) -> Iterator[None]:
    """All writers of the embedded default wait for one that renders, counts tokens or asks a server while it holds the
    lock. ``most_computed`` is in seconds, for stories that store few rows at once."""
    with watched() as ended:
        yield
    wrong = [one for one in ended if one.is_wrong(most_computed)]
    assert not wrong, "\n".join(map(str, wrong))


def _caller() -> str:
    """The innermost lines of the product."""
    frame: FrameType | None = sys._getframe(1)
    ours: list[str] = []
    while frame is not None and len(ours) < 4:
        code = frame.f_code
        if (
            "/dialogs/" in code.co_filename
            and "/tests/" not in code.co_filename
            and "site-packages" not in code.co_filename
        ):
            ours.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(ours) or "elsewhere"
