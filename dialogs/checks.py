"""System checks of files and installed packages. They report at every start, and never prevent it."""

from typing import Any

from django.core import checks

from dialogs.agents import team_file
from dialogs.tools import mcp_config
from dominds.yaml_fields import classes_of
from remediation.policies.registry import registry


@checks.register("installation")
def team_is_sound(**_: Any) -> list[checks.CheckMessage]:
    """Check the teams, but for their models, which ``sync_agents`` judges: checks also run without a database."""
    files = (team_file.current_team(with_models=False), team_file.read_team(team_file.DEMO_FILE, with_models=False))
    problems = [problem for team in files for problem in team.problems]
    return [checks.Warning(str(result), id="dialogs.W001") for result in classes_of(problems)]


@checks.register("installation")
def policies_are_sound(**_: Any) -> list[checks.CheckMessage]:
    return [checks.Warning(str(problem), id="dialogs.W003") for problem in registry().problems]


@checks.register("installation")
def mcp_servers_are_sound(**_: Any) -> list[checks.CheckMessage]:
    result = classes_of(mcp_config.file_config().problems)
    return [checks.Warning(str(problem), id="dialogs.W002") for problem in result]
