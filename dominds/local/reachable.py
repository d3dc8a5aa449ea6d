"""Checks that the database and the Redis of the settings can be used, with a sentence for the person who starts
Dominds.
"""

import time
from collections.abc import Callable
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from dominds import env

WAIT_SECONDS = 5.0  # long enough for a server that is starting
TRY_SECONDS = 2  # the time-out of one attempt
UNDEFINED_TABLE = "42P01"  # one of PostgreSQL's error codes


class Unreachable(ImproperlyConfigured):
    """Raised if a server that the settings name does not answer, or accepts no connection from here."""


def require_servers() -> None:
    """Return once database and Redis answer. Raises ``Unreachable`` after 5 s for each.

    Running parts keep trying, but at a start a wrong address is more likely.
    """
    require_database()
    require_redis()


def require_database() -> None:
    """Check the database. SQLite needs no check, since opening the file fails with a good message."""
    from django.db import connection

    if connection.vendor == "postgresql" and (reason := _reason_after_waiting(_database_reason)):
        raise Unreachable(_sentence(_server_of_database(), reason, "Start its server, or correct DATABASE_URL."))


def require_redis() -> None:
    from django.conf import settings

    if not (reason := _reason_after_waiting(_redis_reason)):
        return
    address = urlsplit(settings.REDIS_URL)
    if env.text("REDIS_URL"):
        hint = "Start it, or correct REDIS_URL; without REDIS_URL, `dominds up` starts one of its own."
    else:
        hint = "Set REDIS_URL to a Redis server, or start `dominds up`, which brings its own."
    raise Unreachable(_sentence(f"Redis ({address.hostname}:{address.port or 6379})", reason, hint))


def database_sentence(error: Exception) -> str:
    """Explain why the database cannot be used; empty if a traceback tells more."""
    from django.db import connection

    sqlstate = getattr(error.__cause__, "sqlstate", None)
    if sqlstate == UNDEFINED_TABLE or "no such table" in str(error):
        return (
            "The database has no tables of this version. Make them with `dominds prepare`, or start `dominds up` once."
        )
    if connection.vendor == "sqlite":
        hint = (
            "DATABASE_URL or DOMINDS_DATA_DIR says where it is; the folder must be this user's to write, and have room."
        )
        return _sentence(f"The database (file {connection.settings_dict['NAME']})", str(error), hint)
    if connection.connection is None:
        reason = _database_reason() or str(error)
        return _sentence(_server_of_database(), reason, "Start its server, or correct DATABASE_URL.")
    return ""


def _server_of_database() -> str:
    from django.db import connection

    return f"The database ({connection.settings_dict['NAME']} at {connection.settings_dict['HOST']})"


def _sentence(what: str, reason: str, hint: str) -> str:
    return f"{what} cannot be used: {' '.join(reason.split()).rstrip('.?')}. {hint}"


def _reason_after_waiting(ask: Callable[[], str]) -> str:
    """Return the last reason why a server cannot be used, or an empty text as soon as it can."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (reason := ask()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return reason


def _database_reason() -> str:
    """Return the server's reason for accepting no connection. The pool would only say that there is none."""
    import psycopg
    from django.db import connection

    try:
        psycopg.connect(**connection.get_connection_params() | {"connect_timeout": TRY_SECONDS}).close()
    except psycopg.OperationalError as error:
        return str(error).removeprefix("connection failed: ").partition("\n")[0]
    return ""


def _redis_reason() -> str:
    from django.conf import settings
    from redis import Redis, RedisError
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    limits = {"socket_timeout": TRY_SECONDS, "socket_connect_timeout": TRY_SECONDS, "retry": Retry(NoBackoff(), 0)}
    try:
        with Redis.from_url(settings.REDIS_URL, **limits) as client:
            client.ping()
    except RedisError as error:
        return getattr(error.__context__, "strerror", None) or str(error)
    return ""
