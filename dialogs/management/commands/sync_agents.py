"""``manage.py sync_agents``: make agents follow ``.minds/team.yaml``."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from dialogs.agents import team_file
from dialogs.context.limits import models_in_use
from dialogs.tools import mcp_config
from dominds.llm.catalog.catalog import retirement_of
from dominds.yaml_fields import classes_of


class Command(BaseCommand):
    help = (
        "Make the agents follow .minds/team.yaml; list what is wrong with it and with mcp.yaml, and models that retire."
    )
    requires_system_checks = ()  # they would report the same problems again

    def handle(self, *_: Any, **__: Any) -> None:
        done = team_file.synchronise()
        for result in classes_of((*done.problems, *mcp_config.current_config().problems)):
            self.stderr.write(self.style.WARNING(str(result)))
        today = timezone.localdate()
        for retires in sorted(filter(None, (retirement_of(model, today) for model in models_in_use()))):
            self.stderr.write(self.style.WARNING(f"An agent's model: {retires}"))
        self.stdout.write(f"{len(done.listed)} agents: {', '.join(done.listed)}")
        if done.disabled:
            self.stdout.write(f"Disabled, since they are no longer listed: {', '.join(done.disabled)}")
