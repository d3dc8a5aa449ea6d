"""The watch on transactions: what waits while one is open is found, whoever waits."""

import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dialogs.store.change import open_change
from tests.dialogs.factories import make_dialog
from tests.harness.transactions import watched

pytestmark = pytest.mark.django_db(transaction=True)


def connect_to_nobody() -> None:
    with suppress(OSError), socket.create_connection(("127.0.0.1", 1), timeout=1):
        pass


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (lambda _: time.sleep(0), "slept"),
        (lambda redis: redis.ping(), "asked Redis"),
        (lambda redis: redis.pipeline(transaction=False).get("nothing").execute(), "asked Redis"),
        (lambda _: connect_to_nobody(), "connected to a server"),
        (lambda _: subprocess.run(["true"], check=True), "started a process"),
    ],
)
def test_waits_within_a_transaction_are_found(redis_client: Any, wait: Callable[[Any], object], text: str) -> None:
    dialog = make_dialog()
    with watched() as ended:
        wait(redis_client)
        with open_change(dialog.pk):
            pass
        with open_change(dialog.pk):
            wait(redis_client)
    free, holding = ended
    assert not free.is_wrong()
    assert holding.is_wrong()
    assert {result.partition(" in ")[0] for result in holding.slow} == {text}
