"""Command line of Dominds: ``dominds up`` starts everything, ``dominds help`` lists the rest."""

import os
import sys
from pathlib import Path

OWN_PYTHON = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"  # of a checkout: `make run` makes it
TRACEBACK = "--traceback"
UNDEFINED_TABLE = "42P01"  # of PostgreSQL's error codes


def main() -> None:
    """Run a management command. ``python manage.py`` and ``python -m dominds`` are the same.

    What only the caller can mend (a setting, a database that is away) ends it with a sentence; ``--traceback`` shows where.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
    except ModuleNotFoundError as error:
        sys.exit(_not_installed(error))
    try:
        if sys.argv[1:2] == ["up"]:
            from dominds.local import up  # which loads no more of Django

            up.main(sys.argv[2:])
        else:
            _manage(sys.argv)
    except ImproperlyConfigured as error:
        if TRACEBACK in sys.argv:
            raise
        sys.exit(str(error))


def _manage(words: list[str]) -> None:
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(words)
    except (OperationalError, ProgrammingError) as error:
        sentence = _database_sentence(error)
        if TRACEBACK in words or not sentence:
            raise
        sys.exit(sentence)
    except OSError as error:  # of a file that the command names
        if TRACEBACK in words or error.filename is None:
            raise
        sys.exit(f"{error.filename}: {error.strerror}")


def _not_installed(error: ModuleNotFoundError) -> str:
    problem = f"{sys.executable} has no {error.name}, which Dominds needs."
    if OWN_PYTHON.exists():
        return f"{problem} Run this with {OWN_PYTHON}, or activate that environment first."
    return f"{problem} In a checkout, `make run` installs everything into .venv; else install the wheel."


def _database_sentence(error: Exception) -> str:
    """What keeps the database from being used; empty where it is something else, which a traceback tells better."""
    from django.db import connection

    sqlstate = getattr(error.__cause__, "sqlstate", None)
    if sqlstate == UNDEFINED_TABLE or "no such table" in str(error):
        return (
            "The database has no tables of this version. Make them with `dominds prepare`, or start `dominds up` once."
        )
    place = connection.settings_dict
    if connection.vendor == "sqlite":
        reason, where = str(error), f"file {place['NAME']}"
        hint = (
            "DATABASE_URL or DOMINDS_DATA_DIR says where it is; the folder must be this user's to write, and have room."
        )
    elif connection.connection is None:
        reason, where = _refusal() or str(error), f"{place['NAME']} at {place['HOST']}"
        hint = "Start its server, or correct DATABASE_URL."
    else:
        return ""
    return f"The database ({where}) cannot be used: {' '.join(reason.split()).rstrip('.?')}. {hint}"


def _refusal() -> str:
    """Why the server takes no connection, in its words: the pool says only that none came in time."""
    import psycopg
    from django.db import connection

    try:
        psycopg.connect(**connection.get_connection_params() | {"connect_timeout": 2}).close()
    except psycopg.OperationalError as error:
        return str(error).removeprefix("connection failed: ").partition("\n")[0]
    return ""


if __name__ == "__main__":
    main()
