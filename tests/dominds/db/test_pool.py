"""Pooled connections: one that the server has closed meanwhile is never handed out."""

import psycopg
import pytest
from django.db import connection

pytestmark = pytest.mark.django_db(transaction=True)


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_connections_that_the_server_closed_are_replaced() -> None:
    lost, settings = backend(), connection.get_connection_params()
    connection.close()  # back to the pool
    known = {name: settings[name] for name in ("dbname", "user", "password", "host", "port") if name in settings}
    with psycopg.connect(**known, autocommit=True) as other:
        ended = other.execute(
            "SELECT pid, pg_terminate_backend(pid, 2000) FROM pg_stat_activity "
            "WHERE application_name = 'dominds' AND datname = current_database() AND state = 'idle'"
        ).fetchall()
    assert (lost, True) in ended
    assert backend() not in [pid for pid, _ in ended]
