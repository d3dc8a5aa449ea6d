"""Pooled connections: none that the server has closed meanwhile is handed out, however many there are."""

import threading

import psycopg
import pytest
from django.db import connection

pytestmark = pytest.mark.django_db(transaction=True)


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def fill_pool(connections: int) -> None:
    """Leave so many idle connections in the pool."""
    together = threading.Barrier(connections)

    def use_one() -> None:
        backend()
        together.wait(20)
        connection.close()

    threads = [threading.Thread(target=use_one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def end_idle_backends() -> list[int]:
    settings = connection.get_connection_params()
    known = {name: settings[name] for name in ("dbname", "user", "password", "host", "port") if name in settings}
    with psycopg.connect(**known, autocommit=True) as other:
        ended = other.execute(
            "SELECT pid, pg_terminate_backend(pid, 2000) FROM pg_stat_activity "
            "WHERE application_name = 'dominds' AND datname = current_database() AND state = 'idle'"
        ).fetchall()
    return [pid for pid, is_gone in ended if is_gone]


@pytest.mark.parametrize("idle", [1, 8])
def test_connections_that_the_server_closed_are_replaced(idle: int) -> None:
    fill_pool(idle)
    lost = backend()
    connection.close()  # back to the pool
    ended = end_idle_backends()
    assert lost in ended
    assert len(ended) >= idle
    assert backend() not in ended
