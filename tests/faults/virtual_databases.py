"""The database of a virtual world: SQLite in memory, or a PostgreSQL server of its own.

On SQLite all threads share one connection, and a transaction happens at once, as its writers wait for each other.

On PostgreSQL each thread has a connection, and hands over within transactions too, before each statement and on both
sides of a commit. Locks are the server's: who waits for one is parked until another thread's commit, rollback or death
frees it, or until the product's ``lock_timeout`` is over by the virtual clock. A process that dies drops its
connections, and the server ends a transaction in which a thread is frozen. The server's clock is the world's by
functions that stand before its own in ``search_path``, so the tables' defaults follow it as well. A seed nearly always
plays the same world again; where one commit frees several who wait, the server's processes race.
"""

import select
import sqlite3
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import errors
from psycopg.pq import ExecStatus, PGconn, TransactionStatus
from psycopg.waiting import Wait
from psycopg_pool import ConnectionPool

from tests.faults.virtual_world import BEGAN, Actor, Process, world
from tests.harness.postgres import PostgresServer

LOCK_SECONDS, IDLE_SECONDS = 2.0, 10.0  # the product's ``lock_timeout`` and ``idle_in_transaction_session_timeout``
ANSWER_SECONDS = 0.005  # in reality: most statements are answered sooner, others may wait for a lock
SLOW, SLOW_SECONDS = 0.05, 1.0  # how many statements take up to so long, others up to 0.01 s
OPTIONS = ("autovacuum=off", "deadlock_timeout=1h", "timezone=UTC", "wal_level=minimal", "max_wal_senders=0")
CLOCK = "; ".join(
    f"CREATE FUNCTION {name}() RETURNS timestamptz LANGUAGE sql STABLE "
    "AS $$ SELECT pg_catalog.current_setting('world.now')::timestamptz $$"
    for name in ("now", "statement_timestamp", "transaction_timestamp", "clock_timestamp")
)
BLOCKED_BY = "SELECT pid, array_to_string(pg_blocking_pids(pid), ' ') FROM pg_stat_activity WHERE pid IN (%s)"
Connection = psycopg.Connection[Any]


class Database(Protocol):
    def prepare(self, folder: Path) -> str:
        """Return the address, for the settings."""

    def lay(self, watch: str) -> None:
        """Make a database with all tables and no rows, and have its statements follow the schedule and the clock.

        ``watch`` is SQL for PostgreSQL, where moments are by the clock of a statement: it may use ``world.began``, when
        the transaction began, and in what is deferred to the commit ``world.now``.
        """

    def begin(self) -> None:
        """Connect to an empty database."""

    def leave(self) -> None:
        """Keep nothing that a fork must not share."""

    def ended(self, actor: Actor) -> None: ...

    def froze(self, actor: Actor) -> None: ...

    def died(self, process: Process) -> None: ...


class SQLite:
    _empty: sqlite3.Connection

    def prepare(self, folder: Path) -> str:
        return f"sqlite:///{folder / 'unused'}"

    def lay(self, watch: str) -> None:
        from django.db import connections
        from django.db.backends.signals import connection_created
        from django.db.backends.sqlite3.base import SQLiteCursorWrapper

        from dominds.db import fresh
        from dominds.db.sqlite3.base import DatabaseWrapper

        database = connections.settings["default"]
        database["NAME"] = ":memory:"  # which Django never closes
        database["OPTIONS"]["cached_statements"] = 1_000
        connection_created.connect(self._follow_clock, weak=False)
        begin: Any = DatabaseWrapper._start_transaction_under_autocommit

        def begin_when_it_is_its_turn(connection: Any) -> None:
            self._before_transaction()
            begin(connection)

        setattr(DatabaseWrapper, begin.__name__, begin_when_it_is_its_turn)
        for owner, name in ((DatabaseWrapper, "run"), (SQLiteCursorWrapper, "execute")):
            setattr(owner, name, self._when_it_is_its_turn(getattr(owner, name)))
        fresh.lay()
        self._empty = connections["default"].connection

    def begin(self) -> None:
        from django.db import connections

        database: Any = connections["default"]
        database.connect()
        self._empty.backup(database.connection)

    def leave(self) -> None: ...

    def ended(self, actor: Actor) -> None: ...

    def froze(self, actor: Actor) -> None: ...

    def died(self, process: Process) -> None: ...

    @staticmethod
    def _before_transaction() -> None:
        from django.db import OperationalError

        if world.current is not None:
            world.sleep(world.random.random() * 0.01)
            if world.random.random() < world.conflicts:
                raise OperationalError("database is locked")

    @staticmethod
    def _when_it_is_its_turn(execute: Callable[..., Any]) -> Callable[..., Any]:
        def execute_then(owner: Any, sql: str, *params: Any) -> Any:
            world.look_alive()
            if world.current is not None and not world.is_in_transaction() and not sql.startswith("BEGIN"):
                world.perhaps_give_way()
            return execute(owner, sql, *params)

        return execute_then

    @staticmethod
    def _follow_clock(connection: Any, **_: Any) -> None:
        def strftime(shape: str, when: str) -> str:
            assert when.upper() == "NOW", when
            return (BEGAN + timedelta(seconds=world.now)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

        connection.connection.create_function("STRFTIME", 2, strftime)


class PostgreSQL:
    """A server, and the pool of connections that Django takes this for."""

    _asks: Any = None  # a connection of our own, to ask the server who waits

    def prepare(self, folder: Path) -> str:
        self._server = PostgresServer(options=OPTIONS).start()
        return self._server.create_database("empty")

    def lay(self, watch: str) -> None:
        from django.db import connections

        from dominds.db import fresh
        from dominds.db.postgresql.base import DatabaseWrapper

        self._idle: list[Connection] = []
        self._waiting: dict[Actor, Connection] = {}
        self._dead: list[int] = []  # processes of the server whose clients are gone
        connections.settings["default"]["OPTIONS"]["options"] = "-c search_path=public,pg_catalog"
        vars(connections)["_connections"] = OfThread()
        self._params = {**connections["default"].get_connection_params(), "autocommit": True}
        DatabaseWrapper._connection_pools["default"] = self  # type: ignore[attr-defined]
        self._exchange()
        with connections["default"].cursor() as cursor:
            cursor.execute(CLOCK)
        fresh.lay()
        with connections["default"].cursor() as cursor:
            cursor.execute(watch or "SELECT 1")
        self.leave()

    def begin(self) -> None:
        self._server.execute('DROP DATABASE IF EXISTS "world" WITH (FORCE)')
        self._server.execute('CREATE DATABASE "world" TEMPLATE "empty" STRATEGY file_copy')  # by half the work
        self._params["dbname"] = "world"
        self._asks = PGconn.connect(self._server._maintenance().encode())

    def leave(self) -> None:
        from django.db import connections

        connections.close_all()
        while self._idle:
            self._idle.pop().close()
        if self._asks is not None:
            self._asks.finish()

    # -- the pool ------------------------------------------------------------------------------------------------------

    def open(self) -> None: ...

    def getconn(self) -> Connection:
        world.look_alive()
        connection = self._idle.pop() if self._idle else psycopg.connect(**self._params)
        vars(connection)["_pool"] = self
        return connection

    def putconn(self, connection: Connection) -> None:
        if connection.info.transaction_status == TransactionStatus.IDLE:
            self._idle.append(connection)
        else:
            self._drop(connection)

    check_connection = staticmethod(ConnectionPool.check_connection)

    # -- threads and processes -----------------------------------------------------------------------------------------

    def ended(self, actor: Actor) -> None:
        for connection in actor.connections.values():
            connection.close()

    def froze(self, actor: Actor) -> None:
        """End the thread's transaction when the server would no longer wait for its next statement."""
        connection = _of(actor)
        if connection is None or connection.info.transaction_status == TransactionStatus.IDLE:
            return
        if actor not in self._waiting and actor.process.thawed_at - world.now > IDLE_SECONDS:
            self._end_later(connection, IDLE_SECONDS)

    def died(self, process: Process) -> None:
        for actor in world.actors:
            connection = _of(actor) if actor.process is process else None
            if connection is None:
                continue
            if connection.info.transaction_status != TransactionStatus.IDLE:
                world.done["died in a transaction"] += 1
            if self._waiting.pop(actor, None):  # the server waits on, as it has not heard of the death
                self._end_later(connection, LOCK_SECONDS)
            self._drop(connection)

    def _end_later(self, connection: Connection, seconds: float) -> None:
        """Have the server end a transaction by itself, unless the thread has died and the server knows."""
        pid = connection.info.backend_pid

        def end() -> None:
            if pid in self._dead or not connection.closed:
                world.done["transactions ended by the server"] += 1
                self._ask(f"SELECT pg_terminate_backend({pid})".encode())
                self._dead.append(pid)
                self._settle()

        world.spawn(world.outside, end, after=seconds)

    def _drop(self, connection: Connection) -> None:
        if not connection.closed:
            self._dead.append(connection.info.backend_pid)
            connection.pgconn.finish()
        self._settle()

    # -- statements ----------------------------------------------------------------------------------------------------

    def _exchange(self) -> None:
        execute, commit, rollback = psycopg.Cursor.execute, psycopg.Connection.commit, psycopg.Connection.rollback

        def execute_in_turn(cursor: Any, query: Any, *params: Any, **options: Any) -> Any:
            connection, sql = cursor.connection, query if isinstance(query, bytes) else str(query).encode()
            self._before_statement(connection, sql)
            try:
                return execute(cursor, query, *params, **options)
            finally:
                if b"ROLLBACK TO" in sql or connection.info.transaction_status != TransactionStatus.INTRANS:
                    self._settle()  # no other statement frees a lock

        def commit_in_turn(connection: Connection) -> None:
            self._give_way()
            self._tell_time(connection)
            commit(connection)
            self._settle()
            self._give_way()

        def rollback_then_settle(connection: Connection) -> None:
            vars(connection)["told"] = None
            rollback(connection)
            self._settle()

        def wait(connection: Connection, answer: Any, *_: Any, **__: Any) -> Any:
            return self._wait(connection, answer)

        exchanged: Any = psycopg
        exchanged.Cursor.execute, exchanged.Connection.wait = execute_in_turn, wait
        exchanged.Connection.commit, exchanged.Connection.rollback = commit_in_turn, rollback_then_settle

    @staticmethod
    def _give_way() -> None:
        world.look_alive()
        world.perhaps_give_way(SLOW_SECONDS if world.random.random() < SLOW else 0.01)

    def _before_statement(self, connection: Connection, sql: bytes) -> None:
        self._give_way()
        if not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
            if world.current is not None and world.random.random() < world.conflicts:
                raise errors.LockNotAvailable("canceling statement due to lock timeout")
            self._set_time(connection, "BEGIN; SET world.began = '{0}'; SET world.now = '{0}'")
        elif b"ROLLBACK TO" in sql:
            vars(connection)["told"] = None
        if b"STATEMENT_TIMESTAMP" in sql.upper() or sql.startswith(b"INSERT"):  # which may have defaults
            self._tell_time(connection)

    def _tell_time(self, connection: Connection) -> None:
        """Set the time of the connection, unless it has it. A rollback takes back what was set within."""
        if vars(connection).get("told") != world.now:
            self._set_time(connection, "SET world.now = '{0}'")

    @staticmethod
    def _set_time(connection: Connection, sql: str) -> None:
        vars(connection)["told"] = world.now
        connection.pgconn.exec_(sql.format((BEGAN + timedelta(seconds=world.now)).isoformat()).encode())

    def _wait(self, connection: Connection, answer: Any) -> Any:
        """Do what psycopg's ``Connection.wait`` does, and hand over while the server waits for a lock."""
        error: errors.Error | None = None
        try:
            wants = next(answer)
            while True:
                if ready := _ready(connection, wants, ANSWER_SECONDS):
                    wants = answer.send(ready)
                elif world.current is not None and self._blocked_by(connection):
                    error = self._wait_for_lock(connection)
        except StopIteration as ended:
            return ended.value
        except errors.QueryCanceled as canceled:
            raise (error or canceled) from None

    def _wait_for_lock(self, connection: Connection) -> errors.Error | None:
        """Return nothing when the lock has come, or cancel the statement and return the error that the server gives
        when it finds a deadlock or has waited too long. Its own clock would find either at another point each time.
        """
        actor = world.me()
        self._waiting[actor] = connection
        if self._is_deadlock(connection):
            error: errors.Error = errors.DeadlockDetected("deadlock detected")
        else:
            world.done["waits for a lock"] += 1
            world.park(LOCK_SECONDS, holds=True)
            if actor not in self._waiting or _ready(connection, Wait.R, 0):
                self._waiting.pop(actor, None)
                return None
            error = errors.LockNotAvailable("canceling statement due to lock timeout")
        del self._waiting[actor]
        world.done[str(error)] += 1
        connection.pgconn.get_cancel().cancel()
        _ready(connection, Wait.R, LOCK_SECONDS)
        return error

    def _is_deadlock(self, connection: Connection) -> bool:
        blocked_by = self._processes()
        seen: set[int] = set()
        before = blocked_by[connection.info.backend_pid]
        while before - seen:
            seen |= before
            before = set().union(*(blocked_by.get(pid, ()) for pid in before))
        return connection.info.backend_pid in seen

    def _settle(self) -> None:
        """Wait until each process of the server that somebody's end may concern has ended, answered, or waits again."""
        while self._dead or self._waiting:
            blocked_by = self._processes()
            at_work = [pid for pid in self._dead if pid in blocked_by and not blocked_by[pid]]
            changed = len(self._dead)
            self._dead = [pid for pid in self._dead if pid in blocked_by]
            changed -= len(self._dead)
            for actor, connection in list(self._waiting.items()):
                if _ready(connection, Wait.R, 0):
                    del self._waiting[actor]
                    world.unpark(actor)
                    changed += 1
                elif not blocked_by.get(connection.info.backend_pid):
                    at_work.append(connection.info.backend_pid)
            if at_work:
                time.sleep(0.001)
            elif not changed:
                return

    def _blocked_by(self, connection: Connection) -> set[int]:
        return self._processes(connection.info.backend_pid)[connection.info.backend_pid]

    def _processes(self, *more: int) -> dict[int, set[int]]:
        """Return for each process of the server that has to do with locks for which others it waits. Those that have
        ended are not named.
        """
        pids = [*self._dead, *(connection.info.backend_pid for connection in self._waiting.values()), *more]
        rows = self._ask((BLOCKED_BY % ",".join(map(str, pids))).encode())
        values = [(rows.get_value(i, 0), rows.get_value(i, 1)) for i in range(rows.ntuples)]
        return {int(pid): {int(other) for other in others.split()} for pid, others in values}

    def _ask(self, sql: bytes) -> Any:
        result = self._asks.exec_(sql)
        assert result.status == ExecStatus.TUPLES_OK, result.error_message
        return result


class OfThread:
    """Django's connections of the thread whose turn it is."""

    _of_scheduler: dict[str, Any]

    def __init__(self) -> None:
        vars(self)["_of_scheduler"] = {}

    def _connections(self) -> dict[str, Any]:
        return self._of_scheduler if world.current is None else world.current.connections

    def __getattr__(self, alias: str) -> Any:
        try:
            return self._connections()[alias]
        except KeyError:
            raise AttributeError(alias) from None

    def __setattr__(self, alias: str, connection: Any) -> None:
        self._connections()[alias] = connection


def _of(actor: Actor) -> Connection | None:
    """Return the thread's open connection to the server."""
    connection = actor.connections["default"].connection if "default" in actor.connections else None
    return None if connection is None or connection.closed else connection


def _ready(connection: Connection, wants: int, seconds: float) -> int:
    """Return for what of ``wants`` (1 to read, 2 to write) the connection is ready within so long, in reality."""
    events = select.poll()
    reads, writes = wants & Wait.R and select.POLLIN, wants & Wait.W and select.POLLOUT
    events.register(connection.pgconn.socket, reads | writes)
    result = 0
    for _, event in events.poll(seconds * 1_000):
        result = (Wait.W if event & select.POLLOUT else 0) | (Wait.R if event & ~select.POLLOUT else 0)
    return result
