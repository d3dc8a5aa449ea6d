"""``manage.py sync_agents``: agents follow ``.minds/team.yaml``."""

from typing import Any

from django.core.management.base import BaseCommand

from dialogs.agents import team_file
from dialogs.tools import mcp_config
from dominds.yaml_fields import classes_of


class Command(BaseCommand):
    help = "Make the agents follow .minds/team.yaml, and list what is wrong with it and with .minds/mcp.yaml."
    requires_system_checks = ()  # they would say the same again

    def handle(self, *_: Any, **__: Any) -> None:
        done = team_file.synchronise()
        for found in classes_of((*done.problems, *mcp_config.current_config().problems)):
            self.stderr.write(self.style.WARNING(str(found)))
        self.stdout.write(f"{len(done.listed)} agents: {', '.join(done.listed)}")
        if done.disabled:
            self.stdout.write(f"Disabled, since they are no longer listed: {', '.join(done.disabled)}")
