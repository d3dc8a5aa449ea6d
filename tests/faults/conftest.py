from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialogs.conftest import _nothing_slow_within_transactions, _redis, script
from tests.faults.arena import Arena

__all__ = ["_nothing_slow_within_transactions", "_redis", "script"]


@pytest.fixture(scope="session")
def _arena() -> Iterator[Arena]:
    arena = Arena()
    try:
        yield arena
    finally:
        arena.stop()


@pytest.fixture
def arena(_arena: Arena, django_db_blocker: Any) -> Iterator[Arena]:
    """A running stack that the test may break in any way. The ORM sees its rows."""
    with django_db_blocker.unblock():
        if not _arena.stack.parts:
            _arena.start()
        _arena.heal()
        _arena.talks = []
        with _arena.orm():
            yield _arena
