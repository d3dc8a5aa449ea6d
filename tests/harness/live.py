"""Fixtures around ``Stack``: one that the whole run shares, and a maker of private ones.

In a test with ``live_stack`` the ORM sees the stack's database: rows are made with factories and read back as usual.
Nothing is rolled back between such tests, so each makes people and dialogs of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections
from django.test import override_settings
from psycopg.conninfo import conninfo_to_dict

from tests.harness import services
from tests.harness.postgres import PostgresServer
from tests.harness.stack import Api, Stack, eventually, running

LIVE_DATABASE = "dominds_live"
__all__ = ["Api", "Stack", "eventually"]


@contextmanager
def orm_on(database_url: str, blocker: Any) -> Iterator[None]:
    """Let the ORM of this process see another PostgreSQL database, where tests may ask one."""
    with orm_at(database_url), blocker.unblock():
        yield


@contextmanager
def orm_at(database_url: str) -> Iterator[None]:
    """Point the ORM of this process at another PostgreSQL database."""
    address, settings = conninfo_to_dict(database_url), connections.settings["default"]
    place = {"NAME": address["dbname"], "HOST": address["host"], "PORT": address["port"], "USER": address["user"]}
    before = {name: settings[name] for name in place}
    _switch_to(place)
    try:
        yield
    finally:
        _switch_to(before)


def _switch_to(place: dict[str, Any]) -> None:
    connections.close_all()
    close_pool(connection)
    connections.settings["default"].update(place)
    connection.settings_dict.update(place)
    ContentType.objects.clear_cache()  # its keys are of the database left


def close_pool(database: Any) -> None:
    """Django's types know the pool of PostgreSQL's wrapper only, not of whichever is configured."""
    database.close_pool()


@pytest.fixture(scope="session")
def shared_stack(postgres: PostgresServer) -> Iterator[Stack]:
    """The stack behind ``live_stack``; use that, or ``with_agents``. To start another one takes nine seconds of CPU."""
    with running(Stack.on_new_database(postgres, LIVE_DATABASE, settings={"SOME_KEY": "sk-test"})) as stack:
        yield stack


@contextmanager
def with_agents(stack: Stack, blocker: Any, **minds: object) -> Iterator[Stack]:
    """The shared stack with these ``minds_dir/NAME.yaml`` while the block runs, and the ORM on its database."""
    from dialogs.agents import team_file

    with orm_on(stack.database_url, blocker), override_settings(MINDS_DIR=stack.minds_dir):
        try:
            stack.place_minds(**minds)
            team_file.synchronise()
            yield stack
        finally:
            for path in stack.minds_dir.iterdir():
                path.unlink()
            team_file.synchronise()


@pytest.fixture
def live_stack(shared_stack: Stack, request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[Stack]:
    """A running stack, shared by the run. Leave it as it was: no killed parts, no changed minds."""
    _refuse_test_database(request)
    with orm_on(shared_stack.database_url, django_db_blocker):
        yield shared_stack


@pytest.fixture
def make_stack(
    request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: Any
) -> Iterator[Callable[..., Stack]]:
    """Make a private stack, with settings of its own. The ORM follows the newest one."""
    _refuse_test_database(request)
    with ExitStack() as opened:

        def make(**options: Any) -> Stack:
            name = f"stack_{tmp_path.name[:40]}".lower()
            made = Stack.on_new_database(services.start_postgres(), name, **options)
            stack = opened.enter_context(running(made))
            opened.enter_context(orm_on(stack.database_url, django_db_blocker))
            return stack

        yield make


def _refuse_test_database(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("django_db") or {"db", "transactional_db"} & set(request.fixturenames):
        raise pytest.UsageError("A test with a live stack already sees its database: drop django_db from it.")
