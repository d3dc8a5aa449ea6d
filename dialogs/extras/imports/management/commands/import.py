"""``dominds import FILE --owner NAME``: conversations that were held elsewhere, as dialogs."""

from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dialogs.errors import Refusal
from dialogs.extras.imports.files import MOST_BYTES, SAYS_WHAT_IS_KNOWN, UnknownExport
from dialogs.extras.imports.reading_process import conversations_apart
from dialogs.extras.imports.store import import_conversations
from dialogs.models import Agent


class Command(BaseCommand):
    help = (
        f"Import conversations of other chats as dialogs; what was imported already is left out. {SAYS_WHAT_IS_KNOWN}"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--owner", required=True, help="whose dialogs they become")
        parser.add_argument("--agent", help="with whom they go on (default: the default agent)")
        parser.add_argument("--dry-run", action="store_true", help="tell what would be imported, and change nothing")

    def handle(
        self, *args: Any, file: Path, owner: str, agent: str | None, dry_run: bool, verbosity: int, **options: Any
    ) -> None:
        person = User.objects.filter(username=owner).first()
        if person is None:
            raise CommandError(f"There is no user {owner!r}. `dominds createuser` makes one.")
        taken = left_out = 0
        try:
            with file.open("rb") as opened:
                result = conversations_apart(opened, str(file), MOST_BYTES)
                for imported in import_conversations(result, person, agent or _default_agent(), dry_run=dry_run):
                    taken, left_out = taken + (not imported.reason), left_out + bool(imported.reason)
                    if verbosity:
                        self.stdout.write(str(imported))
        except (OSError, UnknownExport, Refusal) as error:
            raise CommandError(str(error)) from None
        says = "would be imported" if dry_run else "imported"
        self.stdout.write(self.style.SUCCESS(f"{taken} {says}, {left_out} left out."))


def _default_agent() -> str:
    agent = Agent.objects.filter(is_default=True, enabled=True).first()
    if agent is None:
        raise CommandError("There is no default agent. Name one by --agent.")
    return agent.pk
