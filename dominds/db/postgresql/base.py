"""The database engine that settings name for PostgreSQL."""

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg import Connection

from dominds.db.outcome import CountsChanges


class DatabaseWrapper(CountsChanges, base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> "Connection[Any]":
        """A connection of the pool that the server has not closed meanwhile.

        The pool's own check waits longer after each connection that fails it. When the server came back after a restart,
        four stale ones used up the five seconds that a request may wait.
        """
        connection: Connection[Any] = super().get_new_connection(conn_params)
        while self.pool is not None and not self._is_alive(connection):
            connection.close()
            self.pool.putconn(connection)  # which replaces it
            connection = super().get_new_connection(conn_params)
        return connection

    def _is_alive(self, connection: "Connection[Any]") -> bool:
        """Idle connections have nothing to say. One that does was closed by the server, or bears a notice: only then it is
        asked, since a question to the server takes as long as one of a generation's statements."""
        events = select.poll()
        events.register(connection.fileno(), select.POLLIN)
        if not events.poll(0):
            return True
        try:
            self.pool.check_connection(connection)
        except psycopg.OperationalError:
            return False
        return True
