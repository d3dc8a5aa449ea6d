"""``manage.py restored``: do for a database that was restored by other means what ``restore`` does by itself."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DEFAULT_DB_ALIAS

from dialogs.models import SiteSettings


class Command(BaseCommand):
    help = "After a restore by other means (pg_restore, a copied file): let pages and programs read everything anew."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS)

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        SiteSettings.begin_generation(database)
        self.stdout.write("Cursors of before are known as such now: pages and event streams begin anew.")
