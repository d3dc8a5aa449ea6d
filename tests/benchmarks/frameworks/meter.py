"""The processor time of processes that answer messages, and what is kept of it for each of those who ask."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg


def processor_ns(pids: list[int]) -> dict[int, int]:
    """Of each living process, with all threads that it ever had: the kernel's clock of another
    process has nanoseconds."""
    result = {}
    for pid in pids:
        try:
            result[pid] = time.clock_gettime_ns(~pid << 3 | 2)
        except OSError:  # it ended meanwhile
            continue
    return result


@dataclass
class Measured:
    wall: list[float] = field(default_factory=list)  # milliseconds
    messages: list[int] = field(default_factory=list)  # of all requests that a message led to
    request_bytes: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # milliseconds, less what is spent at rest
    by_process: Counter[str] = field(default_factory=Counter)  # nanoseconds of all messages
    stored: float = 0.0  # bytes a message


@dataclass
class Meter:
    """Reads the processor time of all processes that work for one database: those of ``processes``, and PostgreSQL's
    that serve it."""

    name: str
    database: str
    processes: Callable[[], dict[int, str]]
    looking: "psycopg.Connection[Any]"  # not to be counted
    at_rest: float = 0.0  # milliseconds of processor a second
    _seen: dict[int, int] = field(default_factory=dict)
    _seen_at: float = 0.0

    def read(self) -> tuple[float, Counter[str]]:
        """Return the milliseconds since the last look beyond those at rest, and all nanoseconds by kind of process."""
        serving = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        names = self.processes() | {pid: "PostgreSQL" for (pid,) in self.looking.execute(serving, (self.database,))}
        now, now_at = processor_ns(list(names)), time.perf_counter()
        spent = Counter[str]()
        for pid, ns in now.items():
            spent[names[pid]] += ns - self._seen.get(pid, 0)
        rested = self.at_rest * (now_at - self._seen_at)
        self._seen, self._seen_at = now, now_at
        return spent.total() / 1e6 - rested, spent

    def rest(self, seconds: float) -> None:
        """Learn what is spent while nobody asks anything."""
        self.read()
        time.sleep(seconds)
        self.at_rest += self.read()[0] / seconds
