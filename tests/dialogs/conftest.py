import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from dialogs.context import connected
from dominds.db import fresh
from dominds.settings import SQLITE_OPTIONS
from tests.dialogs.factories import write_minds
from tests.harness import transactions

Script = Callable[..., None]


@pytest.fixture
def script(tmp_path: Path, settings: Any) -> Iterator[Script]:
    """Let the model of provider ``test`` take these steps: ``script({"text": "hello"}, context_length=1000)``. No
    connected provider of the test outlives it."""
    settings.MINDS_DIR = tmp_path / "minds"
    settings.DATA_DIR = tmp_path / "var"

    def write(*steps: dict[str, Any], **model: Any) -> None:
        write_minds(tmp_path / "minds", steps, **model)

    write({"text": "Hello."})
    yield write
    connected.forget()


@pytest.fixture(autouse=True)
def _redis(redis_client: Any) -> None:
    """Services poke and wake through Redis: give them the real one."""


@pytest.fixture(autouse=True)
def _nothing_slow_within_transactions(_django_db_marker: None) -> Iterator[None]:
    with transactions.nothing_slow_within():
        yield


@pytest.fixture(scope="session")
def laid_lite(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Path:
    """An SQLite database to copy, as a new install has it."""
    file = tmp_path_factory.mktemp("lite") / "laid.sqlite3"
    with django_db_blocker.unblock(), _lite_at(file):
        assert fresh.lay("lite")
    return file


@pytest.fixture
def lite(tmp_path: Path, laid_lite: Path, django_db_blocker: Any) -> Iterator[str]:
    """The alias of a migrated SQLite database."""
    file = tmp_path / "lite.sqlite3"
    shutil.copy(laid_lite, file)
    with django_db_blocker.unblock(), _lite_at(file):
        yield "lite"


@contextmanager
def _lite_at(file: Path) -> Iterator[None]:
    described = connections.settings["default"] | {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(file),
        "OPTIONS": SQLITE_OPTIONS,
        "HOST": "",
        "PORT": "",
        "USER": "",
        "PASSWORD": "",
        "CONN_HEALTH_CHECKS": False,
    }
    connections.settings["lite"] = connections.databases["lite"] = described
    try:
        yield
    finally:
        connections["lite"].close()
        del connections["lite"]
        del connections.settings["lite"]
