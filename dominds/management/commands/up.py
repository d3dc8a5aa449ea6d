"""``up`` as a Django command, for ``call_command``. From the command line it runs without Django."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dominds.local import up


class Command(BaseCommand):
    help = up.HELP

    requires_system_checks = ()  # `prepare` checks

    def add_arguments(self, parser: ArgumentParser) -> None:
        up.add_options(parser)

    def handle(self, *, host: str, port: int | None, concurrency: int, **_: Any) -> None:
        up.run(host, port, concurrency)
