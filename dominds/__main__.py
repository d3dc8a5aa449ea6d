"""Command line of Dominds: ``dominds up`` starts everything, ``dominds help`` lists the rest."""

import logging
import os
import sys
from pathlib import Path

# The interpreter of a checkout, which `make run` installs.
OWN_PYTHON = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"
TRACEBACK = "--traceback"
RUNNING = frozenset({"web", "worker", "sweep"})  # commands that keep running, and log errors of the database


def main() -> None:
    """Run a management command, for ``dominds``, ``python manage.py`` and ``python -m dominds``.

    An error that the caller has to repair (a setting, an unavailable database) ends it with a sentence. ``--traceback``
    shows the traceback instead.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
    except ModuleNotFoundError as error:
        sys.exit(_not_installed(error))
    try:
        if sys.argv[1:2] == ["up"]:
            from dominds.local import up  # the import loads nothing of Django

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

    from dominds.local.reachable import database_sentence

    if not RUNNING.intersection(words[1:2]):
        # The sentence below is enough: the pool would log a line for each try to connect.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        execute_from_command_line(words)
    except (OperationalError, ProgrammingError) as error:
        sentence = database_sentence(error)
        if TRACEBACK in words or not sentence:
            raise
        sys.exit(sentence)
    except OSError as error:  # mostly about a file that the command line names
        if TRACEBACK in words or error.filename is None:
            raise
        sys.exit(f"{error.filename}: {error.strerror}")


def _not_installed(error: ModuleNotFoundError) -> str:
    problem = f"{sys.executable} has no {error.name}, which Dominds needs."
    if OWN_PYTHON.exists():
        return f"{problem} Run this with {OWN_PYTHON}, or activate that environment first."
    return f"{problem} In a checkout, `make run` installs everything into .venv; else install the wheel."


if __name__ == "__main__":
    main()
