"""``dominds prepare``: prepare the database before the parts start. ``up`` calls it; several machines need it once."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

import stamina
from django.contrib.auth import get_user_model
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand
from django.db import connection, connections

from dominds import env
from dominds.db import fresh
from dominds.db.outcome import is_locked_out
from dominds.local.reachable import require_database, require_redis
from dominds.local.up import NOBODY_ADMINISTERS

MIGRATE_SECONDS = 120.0


class Command(BaseCommand):
    """Make or migrate the tables, load the agents, and make the administrator whom the environment names."""

    # Only the checks of files that people write and of installed packages. Django's own checks are about the code,
    # which does not change between two starts. They load every page, which would take a third of the time.
    requires_system_checks = ["installation"]

    help = "Bring the tables up to date, load the agents of .minds, and make the first administrator if one is named."

    def add_arguments(self, parser: ArgumentParser) -> None:
        says = f"end with {NOBODY_ADMINISTERS} where nobody may administer yet, and /setup/ is open"
        parser.add_argument("--exit-code", action="store_true", help=says)
        parser.add_argument("--redis", action="store_true", help="end with an error unless Redis answers")

    def handle(self, *, exit_code: bool, redis: bool, **_: Any) -> None:
        require_database()
        if redis:
            require_redis()
        if not fresh.lay():
            migrate()
        if "sync_agents" in get_commands():
            call_command("sync_agents")
        if name := make_administrator():
            self.stdout.write(f"Made the administrator '{name}'.")
        administered = not exit_code or has_administrator()
        connections.close_all()
        if not administered:
            sys.exit(NOBODY_ADMINISTERS)


def migrate() -> None:
    """Run the migrations, while other processes may use the tables.

    Statements have no time limit, since an index may take long. The wait for a lock keeps its limit (two seconds by the
    settings), since later transactions wait behind it. After a time-out the migrations try again.
    """
    on_postgresql = connection.vendor == "postgresql"
    try:
        for attempt in stamina.retry_context(is_locked_out, attempts=60, timeout=MIGRATE_SECONDS, wait_max=3.0):
            with attempt:
                if on_postgresql:
                    _set("SET statement_timeout = 0")
                call_command("migrate", interactive=False, verbosity=0)
    finally:
        if on_postgresql and connection.connection is not None:
            _set("RESET statement_timeout")


def _set(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def has_administrator() -> bool:
    """Check whether there is an administrator. If not, /setup/ is open."""
    return get_user_model().objects.filter(is_superuser=True).exists()


def make_administrator() -> str:
    """Make the administrator whom the environment names, unless there is one. Return the new name, or an empty text."""
    name, password = env.text("DJANGO_SUPERUSER_USERNAME"), os.environ.get("DJANGO_SUPERUSER_PASSWORD", "")
    if not (name and password) or has_administrator():
        return ""
    get_user_model().objects.create_superuser(name, os.environ.get("DJANGO_SUPERUSER_EMAIL", ""), password)
    return name
