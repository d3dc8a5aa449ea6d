"""A second process for tests of the driver: forked from this one, so that it costs a tenth of a second and not three.

It dies or pauses before the n-th statement that it sends to the database. What a worker has done is what it has
committed, so these points are all there are: between two of them, nothing can be told from outside.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection, connections

from tests.harness.live import close_pool

KILLED = 137


@dataclass
class Statements:
    """Counts statements that may be points of interest, and does something before number ``at``."""

    at: int
    then: Callable[[], None]
    counts: Callable[[str], bool] = lambda sql: True
    seen: int = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self.counts(sql):
            self.seen += 1
            if self.seen == self.at:
                self.then()
        return execute(sql, params, many, context)


def die() -> None:
    os._exit(KILLED)


def pause() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def is_unlocked(sql: str) -> bool:
    """Whether the process holds no row before this statement, so that another one can overtake it here."""
    return not connection.in_atomic_block or "FOR UPDATE" in sql


@dataclass(frozen=True, slots=True)
class Ended:
    killed: bool
    paused: bool = False


class Forked:
    """``work`` in a child process. ``at`` 0: it neither dies nor pauses."""

    def __init__(self, work: Callable[[], object], at: int, then: Callable[[], None] = die, unlocked: bool = False):
        connections.close_all()
        close_pool(connection)
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work, Statements(at, then, is_unlocked if unlocked else lambda _: True))

    @staticmethod
    def _run(work: Callable[[], object], statements: Statements) -> None:
        """The child. It shares no connection with its parent, and no thread outlives a fork."""
        code = 1
        try:
            connection.settings_dict["OPTIONS"].pop("pool", None)
            with connection.execute_wrapper(statements):
                work()
            code = 0
        except BaseException:  # noqa: BLE001  nothing may return into the parent's test
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)

    def wait(self) -> Ended:
        """Wait until it has ended or paused. An exception in it fails the test."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return Ended(killed=False, paused=True)
        assert os.waitstatus_to_exitcode(status) in (0, KILLED), "the child failed; its traceback is on stderr"
        return Ended(killed=os.waitstatus_to_exitcode(status) == KILLED)

    def go_on(self) -> Ended:
        os.kill(self.pid, signal.SIGCONT)
        return self.wait()
