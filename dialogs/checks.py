"""System checks of the files that people write: reported at every start, never in the way of it."""

from typing import Any

from django.core import checks

from dialogs import team
from dialogs.tools import mcp_config


@checks.register()
def team_is_sound(**_: Any) -> list[checks.CheckMessage]:
    problems = (*team.current_team().problems, *team.read_team(team.DEMO_FILE).problems)
    return [checks.Warning(str(problem), id="dialogs.W001") for problem in problems]


@checks.register()
def mcp_servers_are_sound(**_: Any) -> list[checks.CheckMessage]:
    return [checks.Warning(str(problem), id="dialogs.W002") for problem in mcp_config.current_config().problems]
