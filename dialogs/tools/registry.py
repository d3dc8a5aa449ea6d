"""The tools an agent can be offered. Each lives in the module of its subject."""

from collections.abc import Mapping
from functools import cache

from dialogs.context.client import client_of
from dialogs.context.limits import policy_of
from dialogs.models import Agent, Dialog
from dialogs.tools import archive, human, mcp, memory, milestone, workspace
from dialogs.tools.tool import Tool
from dominds.llm.messages import ToolSpec


@cache
def builtin_tools() -> Mapping[str, Tool]:
    """The product's own tools, by name."""
    return {tool.name: tool for module in (memory, human, archive, milestone, workspace) for tool in module.TOOLS}


def tools_of(agent: Agent) -> dict[str, Tool]:
    """What this agent is offered, by name, in an order that never changes by itself."""
    builtin = builtin_tools()
    offered = {name: tool for name, tool in builtin.items() if tool.always}
    for name in (*policy_of(agent).policy.tools, *agent.tools):
        if name in builtin:
            offered[name] = builtin[name]
        elif name.startswith(mcp.PREFIX):
            for tool_name, tool in mcp.tools_named(name).items():
                offered.setdefault(tool_name, tool)  # a server's tool never takes the place of our own
    return offered


def offered_to(dialog: Dialog) -> dict[str, Tool]:
    """The agent's tools and then the client's, which never take the place of one of ours."""
    offered = tools_of(dialog.agent)
    for name, tool in _tools_of_client(dialog).items():
        offered.setdefault(name, tool)
    return offered


def _tools_of_client(dialog: Dialog) -> dict[str, Tool]:
    client = client_of(dialog)
    specs = [ToolSpec(item["name"], item["description"], item["parameters"]) for item in client.tools] if client else []
    return {spec.name: Tool(spec) for spec in specs}
