"""The tools an agent can be offered. Each lives in the module of its subject."""

from collections.abc import Mapping
from functools import cache

from dialogs.models import Agent
from dialogs.tools import archive, human, mcp, memory, milestone, workspace
from dialogs.tools.tool import Tool


@cache
def builtin_tools() -> Mapping[str, Tool]:
    """The product's own tools, by name."""
    return {tool.name: tool for module in (memory, human, archive, milestone, workspace) for tool in module.TOOLS}


def tools_of(agent: Agent) -> dict[str, Tool]:
    """What this agent is offered, by name, in an order that never changes by itself."""
    builtin = builtin_tools()
    offered = {name: tool for name, tool in builtin.items() if tool.always}
    if agent.context_policy == Agent.ContextPolicy.BREAKING:
        offered["complete_milestone"] = builtin["complete_milestone"]
    for name in agent.tools:
        if name in builtin:
            offered[name] = builtin[name]
        elif name.startswith(mcp.PREFIX):
            for tool_name, tool in mcp.tools_named(name).items():
                offered.setdefault(tool_name, tool)  # a server's tool never takes the place of our own
    return offered
