"""What the file of SQLite is like, so that a turn writes little to the disk."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

from dominds.settings import SQLITE_OPTIONS


@pytest.fixture
def database(tmp_path: Path, django_db_blocker: Any) -> Iterator[BaseDatabaseWrapper]:
    described = {"ENGINE": "dominds.db.sqlite3", "NAME": str(tmp_path / "file.sqlite3"), "OPTIONS": SQLITE_OPTIONS}
    connection = ConnectionHandler({"default": described})["default"]
    with django_db_blocker.unblock():  # a file of its own
        yield connection
    connection.close()


def write(database: BaseDatabaseWrapper, statement: str) -> None:
    with database.cursor() as cursor:
        cursor.execute(statement)
    database.close()


def test_the_log_stays_when_the_last_thread_has_closed_its_connection(
    database: BaseDatabaseWrapper, tmp_path: Path
) -> None:
    """SQLite writes it back and deletes it with the last connection: a process has one that stays."""
    write(database, "CREATE TABLE note (text)")
    log = tmp_path / "file.sqlite3-wal"
    size, inode = log.stat().st_size, log.stat().st_ino
    assert size > 0
    write(database, "INSERT INTO note VALUES ('Hi')")
    assert log.stat().st_ino == inode
    assert log.stat().st_size > size


def test_a_small_change_of_a_new_file_logs_small_pages(database: BaseDatabaseWrapper, tmp_path: Path) -> None:
    write(database, "CREATE TABLE note (text)")
    log = tmp_path / "file.sqlite3-wal"
    size = log.stat().st_size
    write(database, "INSERT INTO note VALUES ('Hi')")
    assert log.stat().st_size - size == 1024 + 24  # a page and its head


def test_a_new_file_and_its_log_are_their_owners_alone(database: BaseDatabaseWrapper, tmp_path: Path) -> None:
    write(database, "CREATE TABLE note (text)")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    files[0].chmod(0o640)
    write(database, "INSERT INTO note VALUES ('Hi')")
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o640
