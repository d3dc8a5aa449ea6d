"""The database engine that settings name for PostgreSQL."""

import select
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    @property
    def pool(self) -> "ConnectionPool[Connection[Any]] | None":
        pool: ConnectionPool[Connection[Any]] | None = super().pool
        if pool is not None and pool._check is not None:
            pool._check = check
        return pool


def check(connection: "Connection[Any]") -> None:
    """Whether a connection of the pool can be used: raises if not, as ``ConnectionPool.check_connection`` does.

    Idle connections have nothing to say. One that does was closed by the server, or bears a notice: only then it is asked,
    since a question to the server takes as long as one of a generation's statements.
    """
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)
    if look.poll(0):
        ConnectionPool.check_connection(connection)
