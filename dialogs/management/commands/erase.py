from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dialogs.accounts.erasure import erase
from dialogs.errors import Refusal


class Command(BaseCommand):
    requires_system_checks = ()  # `up` and `prepare` check
    help = (
        "Erase a person: their dialogs, keys, settings and sign-ins go, and what they cost remains without a name. "
        "Backups keep them until they are deleted. There is no way back; `export_person` writes all of it to a file."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, username: str, yes: bool, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}.")
        if not yes and input(f"Type {username} to erase them and all that is theirs: ") != username:
            raise CommandError("Nothing was erased.")
        try:
            dialogs = erase(user)
        except Refusal as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"Erased, with {dialogs:,} dialogs. What they cost is counted under {user.username}.")
