"""The servers of one test run, and the environment that points Django at them. Imports no Django.

The addresses are fixed when this is imported, before settings are read; PostgreSQL itself starts with the first test
that asks for a database, so that tests of pure rules start at once.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer

postgres = PostgresServer()
folder = Path(tempfile.mkdtemp(prefix="dominds-tests-"))
atexit.register(shutil.rmtree, folder, ignore_errors=True)


@cache
def redis() -> RedisServer:
    """Return the run's Redis. It starts at once (0.1 s), because only then its port is sure."""
    return RedisServer().start()


@cache
def start_postgres() -> PostgresServer:
    """Return the run's PostgreSQL, started at the first call."""
    return postgres.start()


def set_environment() -> None:
    """Point settings at the servers, or at a closed port for `make unit`.
    Must run before Django's settings are read."""
    minds = folder / "minds"
    minds.mkdir(exist_ok=True)
    os.environ.update(
        DJANGO_SETTINGS_MODULE="dominds.settings",
        DATABASE_URL=f"sqlite:///{folder}/dominds.sqlite3" if os.environ.get("DOMINDS_ON_SQLITE") else postgres.url(),
        REDIS_URL="redis://127.0.0.1:1/0" if os.environ.get("DOMINDS_UNIT") else redis().url,
        SECRET_KEY="only-for-tests-" + "0123456789abcdef" * 3,
        DOMINDS_DATA_DIR=str(folder / "data"),
        DOMINDS_MINDS_DIR=str(minds),
        DOMINDS_LOG="console",
        DOMINDS_STRICT_WAITS="1",
        DOMINDS_SWEEPS="0",  # tests sweep when it is time
        DOMINDS_LOCAL_SERVERS="off",  # whatever runs on the machine that tests
        # A multiplication that is shared among cores waits by spinning, which several workers cannot afford.
        OPENBLAS_NUM_THREADS="1",
        # Playwright keeps an event loop running in the main thread; rows are read and written beside it.
        DJANGO_ALLOW_ASYNC_UNSAFE="1",
    )
    # Ended politely, the run still stops its servers and deletes their folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for name in ("ALLOWED_HOSTS", "DEBUG", "PORT", "DOMINDS_PASSWORD", "DJANGO_SUPERUSER_USERNAME"):
        os.environ.pop(name, None)
