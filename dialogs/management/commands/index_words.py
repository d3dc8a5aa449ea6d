"""``manage.py index_words``: build PostgreSQL's trigrams for searches through all dialogs.

An operator decides this and not a migration, because the index makes storing each message slower
(``docs/operations.md``).
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from dialogs.models import Dialog, Turn

COLUMNS = {"words_of_turns": (Turn, "text"), "words_of_titles": (Dialog, "title")}


class Command(BaseCommand):
    help = (
        "Make an index of words, with which a search of all dialogs need not read them all. Others can write meanwhile."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--drop", action="store_true", help="remove it again")

    def handle(self, *_: Any, drop: bool, **__: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError(
                "SQLite has no index for parts of words: all is searched by reading it. PostgreSQL has one."
            )
        with connection.cursor() as cursor:
            if not drop:
                _extend(cursor)
            cursor.execute("SET statement_timeout = 0")
            for name, (model, column) in COLUMNS.items():
                # Also drops an index that was left half made.
                cursor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
                if not drop:
                    table = model._meta.db_table
                    cursor.execute(
                        f'CREATE INDEX CONCURRENTLY "{name}" ON "{table}" USING gin (UPPER("{column}"::text) '
                        "gin_trgm_ops)"
                    )
                    self.stdout.write(f"Indexed the words of {table}.")


def _extend(cursor: Any) -> None:
    try:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except DatabaseError as error:
        raise CommandError(
            f"PostgreSQL's pg_trgm cannot be made here: {str(error).splitlines()[0]}. Install its contrib package, and "
            'let somebody who may run "CREATE EXTENSION pg_trgm" in this database. Until then all is searched by '
            "reading it, as before."
        ) from error
