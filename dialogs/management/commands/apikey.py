from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dialogs.accounts.api_keys import create_key


class Command(BaseCommand):
    help = "Print a new API key for a person, and nothing else. It is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}. Make one with: python manage.py createuser {username}")
        self.stdout.write(create_key(user, name="apikey command"))
