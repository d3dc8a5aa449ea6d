from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS

from dialogs.extras.backups.backups import BackupFailed, restore
from dominds.local.reachable import require_database


class Command(BaseCommand):
    help = "Bring back what `backup` wrote. Stop every part of Dominds first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--replace", action="store_true", help="delete what the database holds now")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS)

    def handle(self, *args: Any, file: Path, replace: bool, database: str, **options: Any) -> None:
        require_database()
        try:
            restored = restore(file, using=database, replace=replace)
        except BackupFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored the database as of {restored.manifest.created_at}.")
        if restored.minds_written:
            self.stdout.write(f"Wrote to .minds: {', '.join(restored.minds_written)}.")
        if restored.minds_kept:
            self.stdout.write(f"Kept your own, which differ from the backup's: {', '.join(restored.minds_kept)}.")
