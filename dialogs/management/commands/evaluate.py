"""``dominds evaluate PATH...``: what each policy keeps of recorded dialogs."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from remediation.evaluation.command import DESCRIPTION, add_options, run
from remediation.evaluation.formats import UnknownFormat


class Command(BaseCommand):
    help = DESCRIPTION
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(run(options), ending="")
        except (UnknownFormat, OSError) as error:
            raise CommandError(str(error)) from None
