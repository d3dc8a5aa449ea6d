from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dialogs.queries.person_export import export_person


class Command(BaseCommand):
    requires_system_checks = ()  # `up` and `prepare` check
    help = "Write all that is a person's as JSON, without passwords and keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}.")
        for piece in export_person(user):
            self.stdout.write(piece, ending="")
        self.stdout.write("")
