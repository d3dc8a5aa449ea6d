"""The database engine that settings name for SQLite: Django's own, with writers that take turns."""

import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX
from django.db.backends.sqlite3.operations import DatabaseOperations

from dominds.db.fair_semaphore import FairSemaphore
from dominds.db.outcome import CountsChanges

# For each file, a semaphore that lets one thread of this process write at a time.
_turns: defaultdict[str, FairSemaphore] = defaultdict(lambda: FairSemaphore(1))

_open: dict[str, sqlite3.Connection] = {}  # connections that stay open, by file
_opening = threading.Lock()


def stay_open(name: str) -> None:
    """Hold the file open in this process.

    The last connection to close an SQLite file writes the whole log back and deletes it. Threads come and go, so that
    this used to happen several times a turn.
    """
    with _opening:
        if name not in _open:
            _open[name] = sqlite3.connect(name, check_same_thread=False)
            _open[name].execute("PRAGMA user_version").fetchone()  # a read opens the log


def make_private(file: Path) -> None:
    """Make the file, readable only by its owner, unless it exists. SQLite would use the umask.

    SQLite gives the log the same mode.
    """
    with suppress(OSError):  # SQLite will report the error
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))


class ForgivingOperations(DatabaseOperations):
    """Reads a cost that is no number as NaN, since one damaged row must not break every list that contains it."""

    def get_decimalfield_converter(self, expression: Any) -> Callable[..., Decimal | None]:
        read: Callable[..., Decimal | None] = super().get_decimalfield_converter(expression)

        def read_or_nan(value: Any, *others: Any) -> Decimal | None:
            try:
                return read(value, *others)
            except (TypeError, InvalidOperation):
                return Decimal("NaN")

        return read_or_nan


class DatabaseWrapper(CountsChanges, base.DatabaseWrapper):
    """A connection that knows the outcome of a change, and waits for its turn before it begins a transaction.

    SQLite's own waiting writers try again every tenth of a second, in no order. With 50 people a writer waited seven
    seconds for others of which none took 0.3 s, and then gave up with "database is locked".
    """

    ops_class = ForgivingOperations
    _holds_turn = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not self.is_in_memory_db():
            make_private(Path(conn_params["database"]))
        connection = super().get_new_connection(conn_params)
        if not self.is_in_memory_db():
            stay_open(str(conn_params["database"]))
        return connection

    def _start_transaction_under_autocommit(self) -> None:
        seconds = float(self.settings_dict["OPTIONS"].get("timeout", 5))
        if not self._holds_turn and not self._turns.take(seconds):
            raise OperationalError(f"database is locked: {seconds:g} s were not enough for the writers before this one")
        self._holds_turn = True
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs know nothing of it
        except BaseException:
            self._give_turn_back()
            raise

    def _commit(self) -> None:
        super()._commit()
        self._give_turn_back()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._give_turn_back()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._give_turn_back()

    def _give_turn_back(self) -> None:
        if self._holds_turn:
            self._holds_turn = False
            self._turns.give_back()

    def run(self, sql: str, params: Sequence[Any]) -> Any:
        """Execute constant SQL, whose translated placeholders are cached."""
        return self.connection.execute(_with_question_marks(sql), params)

    @property
    def _turns(self) -> FairSemaphore:
        name: Any = self.settings_dict["NAME"]
        return _turns[str(name)]


@cache
def _with_question_marks(sql: str) -> str:
    """Write SQL with SQLite's own placeholders, since Django would translate those of Python each time."""
    return FORMAT_QMARK_REGEX.sub("?", sql).replace("%%", "%")
