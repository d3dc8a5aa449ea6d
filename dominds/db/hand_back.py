"""Gives this thread's database connections back before it waits for a server outside.

Sixteen calls that wait for a silent host would otherwise hold all connections of a process, and every page of everybody
would fail.
"""

import structlog
from django.conf import settings
from django.db import connections

log = structlog.get_logger(__name__)


class HeldTransaction(AssertionError):
    """An error about a transaction that is open while a server outside is asked."""


def hand_back(what: str) -> None:
    """Close this thread's idle connections. An open transaction is a fault of ours: raised in tests, or else logged."""
    for connection in connections.all(initialized_only=True):
        if any(not vars(block).get("_from_testcase") for block in connection.atomic_blocks):
            if settings.STRICT_WAITS:
                raise HeldTransaction(f"A transaction is open while this thread asks {what}. Commit it before.")
            log.error("transaction_held_while_waiting", what=what, stack_info=True)
        elif not connection.in_atomic_block:
            connection.close()
