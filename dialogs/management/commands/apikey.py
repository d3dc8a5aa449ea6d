from argparse import ArgumentParser
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dialogs.accounts.api_keys import create_key
from dialogs.errors import Invalid
from dialogs.models import ApiKey


class Command(BaseCommand):
    requires_system_checks = ()  # `up` and `prepare` check
    help = "Print a new API key for a person, and nothing else. It is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--scope", choices=ApiKey.Scope.values, default=ApiKey.Scope.ALL)
        parser.add_argument("--days", type=int, help="how long it holds; until it is revoked, if left out")
        parser.add_argument(
            "--keep-days", type=int, help="how long dialogs that it makes are kept; for ever, if left out"
        )

        parser.add_argument("--budget-usd", type=Decimal, help="what it may cost a month")

    def handle(self, *args: Any, username: str, scope: str, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}. Make one with: python manage.py createuser {username}")
        given = {name: options[name] for name in ("days", "keep_days", "budget_usd")}
        try:
            self.stdout.write(create_key(user, "apikey command", scope=scope, **given))
        except Invalid as error:
            raise CommandError(error.message) from None
