"""What the warm-up loads is loaded once, beside the calls and not before them."""

import asyncio
import threading

import pytest
from django.db import DatabaseError

from dominds.web.startup import at_first_call, warm_up
from tests.harness.stack import eventually


async def served(scope: object, receive: object, send: object) -> None:
    """Answer nothing."""


def test_the_first_call_begins_it_and_waits_for_nothing() -> None:
    begun: list[str] = []
    go_on = threading.Event()

    def load() -> None:
        begun.append(threading.current_thread().name)
        go_on.wait(5)

    application = at_first_call(served, lambda: warm_up(load))

    async def call_twice() -> None:
        assert not begun
        await application({}, None, None)
        await application({}, None, None)

    asyncio.run(call_twice())
    eventually(lambda: begun)
    go_on.set()
    assert begun == ["loading"]


@pytest.mark.parametrize("error", [DatabaseError("it is away"), KeyError("a vocabulary")])
def test_what_cannot_be_loaded_hurts_nobody(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def load() -> None:
        raise error

    warm_up(load)
    eventually(lambda: "not_loaded_early" in caplog.text)
