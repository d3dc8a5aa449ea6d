"""Writers of SQLite take turns: who waits longest is next, and who waits too long is told."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.db.utils import ConnectionHandler

from dominds.db.fair_semaphore import FairSemaphore
from dominds.settings import SQLITE_OPTIONS

WRITERS = 12
HELD_SECONDS = 0.12  # longer than SQLite's pause between two looks


def test_turns_come_in_the_order_of_waiting() -> None:
    turns, served = FairSemaphore(1), list[int]()
    assert turns.take(1)

    def wait(number: int) -> None:
        assert turns.take(10)
        served.append(number)
        turns.give_back()

    threads = []
    for number in range(WRITERS):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(turns._waiting) <= number:
            time.sleep(0.001)
    turns.give_back()
    for thread in threads:
        thread.join()
    assert served == list(range(WRITERS))
    assert turns.take(0)


def test_who_waits_too_long_is_told_and_keeps_nobody_up() -> None:
    turns = FairSemaphore(1)
    assert turns.take(0)
    assert not turns.take(0.05)
    turns.give_back()
    assert turns.take(0)


@pytest.fixture
def django_db_unblocked(django_db_blocker: Any) -> Iterator[None]:
    """These tests have a file of their own."""
    with django_db_blocker.unblock():
        yield


def databases(folder: Path, seconds: float) -> ConnectionHandler:
    return ConnectionHandler(
        {
            "default": {
                "ENGINE": "dominds.db.sqlite3",
                "NAME": str(folder / "turns.sqlite3"),
                "OPTIONS": {**SQLITE_OPTIONS, "timeout": seconds},
            }
        }
    )


@pytest.mark.usefixtures("django_db_unblocked")
def test_writers_take_turns_in_order_even_after_failures(tmp_path: Path) -> None:
    handler = databases(tmp_path, 20)
    with handler["default"].cursor() as cursor:
        cursor.execute("CREATE TABLE served (number INTEGER)")
    turns = handler["default"]._turns  # type: ignore[attr-defined]
    assert turns.take(0)

    def write(number: int) -> None:
        connection = handler["default"]
        connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO served VALUES (%s)", [number])
        time.sleep(HELD_SECONDS)
        if number == 0:
            connection.rollback()
        else:
            connection.commit()
        connection.close()

    threads = []
    for number in range(WRITERS):
        threads.append(threading.Thread(target=write, args=(number,)))
        threads[-1].start()
        while len(turns._waiting) <= number:
            time.sleep(0.001)
    turns.give_back()
    for thread in threads:
        thread.join()
    with handler["default"].cursor() as cursor:
        cursor.execute("SELECT number FROM served ORDER BY rowid")
        assert [number for (number,) in cursor.fetchall()] == list(range(1, WRITERS))
    handler.close_all()


@pytest.mark.usefixtures("django_db_unblocked")
def test_a_writer_that_waits_in_vain_fails_as_before(tmp_path: Path) -> None:
    handler = databases(tmp_path, 0.2)
    connection = handler["default"]
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            handler["default"].set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        except OperationalError as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    connection.close()
    with pytest.raises(OperationalError, match="database is locked"):
        raise failures[0]
