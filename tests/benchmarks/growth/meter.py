"""Processor time of an act, here and in the database, and what the database touched for it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.growth.seeding import TABLES

RUNS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one request: statements, milliseconds of processor time here and in the database,
    rows that the database touched."""

    statements: int
    here: float
    database: float
    rows: int
    wall: float

    @property
    def processor(self) -> float:
        return self.here + self.database


class Meter:
    """Processor time of the connection's server process, and what its database counted."""

    def __init__(self) -> None:
        from django.db import connection

        self.connection = connection
        with connection.cursor() as cursor:  # what parallel workers do would count nowhere
            cursor.execute("SET max_parallel_workers_per_gather = 0")

    def _asked(self, statement: str) -> tuple[int, ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(int(value) for value in cursor.fetchone())

    def _now(self) -> tuple[int, float]:
        self._asked("SELECT 1 FROM pg_stat_force_next_flush()")
        rows, pid = self._asked(
            "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read + n_tup_ins + n_tup_upd), pg_backend_pid() FROM "
            "pg_stat_user_tables"
        )
        return rows, int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6

    def measured(self, act: Callable[[], object], runs: int = RUNS) -> Cost:
        statements = []

        def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            statements.append(sql)
            return execute(sql, params, many, context)

        act()
        with self.connection.execute_wrapper(note):
            act()
        results = []
        idle_before, (_, at) = self._now(), self._now()
        probe = at - idle_before[1]  # what asking itself costs
        for _ in range(runs):
            rows, server = self._now()
            here, wall = time.thread_time(), time.perf_counter()  # threads that index texts meanwhile count elsewhere
            act()
            wall, here = time.perf_counter() - wall, time.thread_time() - here
            rows_after, server_after = self._now()
            results.append((here * 1000, max(0.0, server_after - server - probe), rows_after - rows, wall * 1000))
        here, server, touched, wall = (median(column) for column in zip(*results, strict=True))
        return Cost(len(statements), here, server, int(touched), wall)


def sizes() -> dict[str, int]:
    """Bytes of each table with its indexes."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relname = ANY(%s)", [TABLES])
        return dict(cursor.fetchall())
