"""The database engine that settings name for PostgreSQL."""

import re
import select
from collections.abc import Sequence
from datetime import datetime, tzinfo
from functools import cache
from itertools import count
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from psycopg import Connection, RawCursor
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader

from dominds.db.outcome import CountsChanges

FAR_PAST, FAR_FUTURE = datetime(1, 1, 3), datetime(9999, 12, 29)  # days that Python can represent in every time zone
KEPT_CURSORS = 100  # per connection, which is also the number of prepared statements that psycopg keeps
KEPT_ROWS = 2  # a cursor with more rows is not kept, since it holds its last result


class ForgivingTzLoader(TimestamptzLoader):
    """Reads a time that Python cannot represent, such as ``infinity``, as one that is far away.

    One damaged row must not break every list that contains it.
    """

    timezone: tzinfo | None = None

    def load(self, data: Any) -> datetime:
        try:
            moment = super().load(data)
        except psycopg.DataError:
            is_past = bytes(data).endswith(b"BC") or bytes(data).startswith(b"-")
            moment = FAR_PAST if is_past else FAR_FUTURE
        return moment.replace(tzinfo=self.timezone)


@cache
def _adapters_for(zone: tzinfo | None) -> AdaptersMap:
    """Return Django's adapters with the forgiving loader."""
    adapters = AdaptersMap(get_adapters_template(True, zone))
    adapters.register_loader("timestamptz", type("Loader", (ForgivingTzLoader,), {"timezone": zone}))
    return adapters


class DatabaseWrapper(CountsChanges, base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "context": _adapters_for(self.timezone)}

    def get_new_connection(self, conn_params: dict[str, Any]) -> "Connection[Any]":
        """Take a connection from the pool that the server has not closed.

        The pool's own check waits longer after each connection that fails it: after a restart of the server, four stale
        connections used up the five seconds that a request may wait.
        """
        connection: Connection[Any] = super().get_new_connection(conn_params)
        while self.pool is not None and not self._is_alive(connection):
            connection.close()
            self.pool.putconn(connection)  # the pool replaces a closed connection
            connection = super().get_new_connection(conn_params)
        return connection

    def _is_alive(self, connection: "Connection[Any]") -> bool:
        """Check an idle connection. The server is asked only if bytes or the end of the connection have arrived.

        Asking takes as long as a statement of a generation.
        """
        events = select.poll()
        events.register(connection.fileno(), select.POLLIN)
        if not events.poll(0):
            return True
        try:
            self.pool.check_connection(connection)
        except psycopg.OperationalError:
            return False
        return True

    def run(self, sql: str, params: Sequence[Any]) -> Any:
        """Execute constant SQL by the cursor that executed it before, which therefore knows the types of its values.

        The cursor is valid until the next statement.
        """
        kept: dict[str, RawCursor[Any]] = vars(self.connection).setdefault("kept_cursors", {})
        cursor = kept.pop(sql, None) or RawCursor(self.connection)
        cursor.execute(_number_placeholders(sql), params)
        if cursor.rowcount <= KEPT_ROWS and len(kept) < KEPT_CURSORS:
            kept[sql] = cursor
        return cursor


@cache
def _number_placeholders(sql: str) -> bytes:
    """Write SQL with PostgreSQL's own placeholders, since psycopg would translate those of Python each time."""
    numbers = count(1)
    return re.sub("%[s%]", lambda mark: f"${next(numbers)}" if mark[0] == "%s" else "%", sql).encode()
