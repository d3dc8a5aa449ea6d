from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError

from dialogs.extras.backups.backups import BackupFailed, back_up
from dialogs.extras.backups.pg_dump import ToolFailed
from dominds.local.reachable import require_database


class Command(BaseCommand):
    help = "Write everything that Dominds keeps to one file, while it runs. Not in it: sessions, keys, Redis."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="must not exist; only its owner will be able to read it")
        parser.add_argument("--portable", action="store_true", help="JSON lines, which PostgreSQL and SQLite both take")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS)

    def handle(self, *args: Any, file: Path, portable: bool, database: str, **options: Any) -> None:
        require_database()
        try:
            manifest = back_up(file, using=database, prefer_portable=portable)
        except (BackupFailed, ToolFailed, DatabaseError, OSError) as error:
            raise CommandError(str(error)) from error
        minds = f" and {len(manifest.minds)} files of .minds" if manifest.minds else ""
        size = file.stat().st_size
        self.stdout.write(f"Wrote {file} ({size:,} bytes): the database ({manifest.database}){minds}.")
