import getpass
import os
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from dialogs.accounts.names import check_name


class Command(BaseCommand):
    requires_system_checks = ()  # `up` and `prepare` check
    help = "Make an ordinary person. The password comes from DOMINDS_PASSWORD, or is asked for."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        if User.objects.filter(username=username).exists():
            raise CommandError(f"There is a user {username!r} already. Choose another name.")
        password = os.environ.get("DOMINDS_PASSWORD") or getpass.getpass("Password: ")
        user = User(username=username)
        try:
            user.full_clean(exclude=["password"])
            check_name(username, user)
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        user.set_password(password)
        user.save()
        self.stdout.write(f"User {username} made.")
