"""Release of a thread's database connections before it waits for a server outside.

Otherwise sixteen calls that wait for a silent host would hold all connections of a process, and every page would fail.
"""

import structlog
from django.conf import settings
from django.db import connections

log = structlog.get_logger(__name__)


class HeldTransaction(AssertionError):
    """Raised if a transaction is open while a server outside is asked."""


def hand_back(what: str) -> None:
    """Close this thread's idle connections. An open transaction is an error of ours: raised in tests, else logged."""
    for connection in connections.all(initialized_only=True):
        if any(not vars(block).get("_from_testcase") for block in connection.atomic_blocks):
            if settings.STRICT_WAITS:
                raise HeldTransaction(f"A transaction is open while this thread asks {what}. Commit it before.")
            log.error("transaction_held_while_waiting", what=what, stack_info=True)
        elif not connection.in_atomic_block:
            connection.close()
