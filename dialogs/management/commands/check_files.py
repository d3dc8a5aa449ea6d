"""``manage.py check_files``: report problems of the files in ``.minds``, the unusable first."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dialogs.agents import team_file
from dialogs.context import config, limits
from dialogs.tools import mcp_config
from dominds.yaml_fields import Severity, classes_of


class Command(BaseCommand):
    help = (
        "Sum up what is wrong with llm.yaml, team.yaml, mcp.yaml and context.yaml. Fails when something cannot be used."
    )
    requires_system_checks = ()  # they would report the same problems again

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--details", action="store_true", help="list every problem, not one line for each class")

    def handle(self, *_: Any, details: bool, **__: Any) -> None:
        problems = [
            *limits.catalog().problems,
            *team_file.current_team().problems,
            *mcp_config.current_config().problems,
            *config.problems(),
        ]
        classes = classes_of(problems)
        for result in classes:
            self.stdout.write(str(result))
            for problem in result.problems if details and len(result.problems) > 1 else ():
                self.stdout.write(f"    {problem.path}: {problem.reason}")
        self.stdout.write(f"{len(problems)} problems of {len(classes)} classes." if problems else "Nothing is wrong.")
        if any(result.severity is Severity.UNUSABLE for result in classes):
            raise SystemExit(1)
