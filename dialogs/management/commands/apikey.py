from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dialogs.accounts.api_keys import create_key
from dialogs.errors import Invalid
from dialogs.models import ApiKey
from dialogs.views.forms import ApiKeyForm

LIMITS = ("days", "keep_days", "budget_usd")  # held to the bounds of the page that makes keys


class Command(BaseCommand):
    requires_system_checks = ()  # `up` and `prepare` check
    help = "Print a new API key for a person, and nothing else. It is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--scope", choices=ApiKey.Scope.values, default=ApiKey.Scope.ALL)
        parser.add_argument("--days", help="how many days it holds; until it is revoked, if left out")
        parser.add_argument("--keep-days", help="how many days dialogs that it makes are kept; for ever, if left out")
        parser.add_argument("--budget-usd", help="what it may cost a month")

    def handle(self, *args: Any, username: str, scope: str, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}. Make one with: python manage.py createuser {username}")
        given = ApiKeyForm({name: options[name] for name in LIMITS})
        if not given.is_valid():
            raise CommandError(" ".join(f"--{name.replace('_', '-')}: {why[0]}" for name, why in given.errors.items()))
        limits = {name: given.cleaned_data[name] for name in LIMITS}
        try:
            self.stdout.write(create_key(user, "apikey command", scope=scope, **limits))
        except Invalid as error:
            raise CommandError(error.message) from None
