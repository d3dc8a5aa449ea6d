"""``manage.py prepare``: what must have happened before the parts start. ``up`` calls it; with many machines, run it once."""

import os
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand
from django.db import connections

from dominds import env


class Command(BaseCommand):
    """Migrate, load the agents, make the administrator whom the environment names."""

    help = "Bring the tables up to date, load the agents of .minds, and make the first administrator if one is named."

    def handle(self, **_: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        if "sync_agents" in get_commands():
            call_command("sync_agents")
        if name := make_administrator():
            self.stdout.write(f"Made the administrator '{name}'.")
        connections.close_all()


def has_administrator() -> bool:
    """Say whether anyone may administer; if not, /setup/ is open."""
    return get_user_model().objects.filter(is_superuser=True).exists()


def make_administrator() -> str:
    """Make the administrator whom the environment names, unless there is one, and return the name if it was done."""
    name, password = env.text("DJANGO_SUPERUSER_USERNAME"), os.environ.get("DJANGO_SUPERUSER_PASSWORD", "")
    if not (name and password) or has_administrator():
        return ""
    get_user_model().objects.create_superuser(name, os.environ.get("DJANGO_SUPERUSER_EMAIL", ""), password)
    return name
