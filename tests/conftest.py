"""Shared fixtures. The first lines start the servers, since settings read their addresses when Django loads."""

import os
from collections.abc import Iterator

import django
import pytest
from django.conf import settings
from django.contrib.contenttypes.management import create_contenttypes
from django.db import connection
from django.db.models.signals import post_migrate
from redis import Redis

from tests.harness import services

if settings.configured:
    raise pytest.UsageError("Django's settings were read before the test servers stood: unset DJANGO_SETTINGS_MODULE.")
services.set_environment()
django.setup()  # pytest-django would do so later, but plugins below and factories import models

pytest_plugins = ["tests.harness.live", "tests.harness.browser"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long ways of breaking things to ``make faults``."""
    if os.environ.get("DOMINDS_FAULTS") == "all":
        return
    deep = [item for item in items if item.get_closest_marker("deep")]
    config.hook.pytest_deselected(items=deep)
    items[:] = [item for item in items if item not in deep]


@pytest.fixture(scope="session")
def postgres() -> services.PostgresServer:
    """The run's PostgreSQL server."""
    return services.start_postgres()


@pytest.fixture(scope="session")
def redis_server() -> services.RedisServer:
    """The run's Redis, the one that settings.REDIS_URL names."""
    return services.redis()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres: services.PostgresServer) -> None:
    """Bring PostgreSQL up before pytest-django makes the test database."""


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """Keep content types and permissions over the flush after each test: making them anew took half of its time."""
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)
    table_names = connection.introspection.django_table_names

    def without_kept(**options: bool) -> list[str]:
        return [name for name in table_names(**options) if name not in ("django_content_type", "auth_permission")]

    connection.introspection.django_table_names = without_kept  # type: ignore[method-assign]


@pytest.fixture
def redis_client(redis_server: services.RedisServer) -> Iterator[Redis]:
    """A client of the run's Redis, emptied first."""
    with redis_server.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def anyio_backend() -> str:
    """Coroutine tests marked ``anyio`` run on asyncio, as the server does."""
    return "asyncio"
