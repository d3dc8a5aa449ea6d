"""A server that all tests of clients share, and where their packages are."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.rig import Rig, rig
from tests.harness.live import orm_on


@pytest.fixture(scope="session")
def served(django_db_blocker: Any) -> Iterator[Rig]:
    with rig() as made, orm_on(made.stack.database_url, django_db_blocker):
        yield made
