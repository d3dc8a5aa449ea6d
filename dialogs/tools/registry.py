"""The registry of tools that an agent can be offered. Each tool is written in the module of its subject."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from django.utils.module_loading import import_string

from dialogs.context.client import client_of
from dialogs.context.limits import policy_of
from dialogs.extension import installed_extensions
from dialogs.models import Agent, Dialog
from dialogs.tools import archive, human, mcp, memory, milestone, workspace
from dialogs.tools.mcp_config import current_config
from dialogs.tools.tool import Tool
from dominds.llm.messages import NO_TOOL, ToolSpec
from dominds.yaml_fields import quote_value
from remediation.policies.policy import Policy


@cache
def builtin_tools() -> Mapping[str, Tool]:
    """Return the product's own tools, by name."""
    return {tool.name: tool for module in (memory, human, archive, milestone, workspace) for tool in module.TOOLS}


TOOLSETS: Mapping[str, tuple[Tool, ...]] = {"workspace": workspace.TOOLS}
OTHER_NAMES = {"ws_read": "workspace"}  # the name in the original Dominds
ALL, NOT = "*", "!"


def toolset_problem(name: str) -> str:
    """Return why there is no such group of tools; empty if there is."""
    wanted = name.removeprefix(NOT)
    config = current_config()
    if name == ALL or {wanted, OTHER_NAMES.get(wanted)} & {*TOOLSETS, *config.servers, *config.off}:
        return ""
    return f"there is no toolset {quote_value(wanted)}; known are {', '.join([*TOOLSETS, *config.servers])}"


def names_in(toolsets: Sequence[str]) -> Iterator[str]:
    """Yield the names of the tools of these groups, as in an agent's list. ``!name`` excludes a group, wherever it
    stands.
    """
    named = [OTHER_NAMES.get(name, name) for name in toolsets]
    left_out = {OTHER_NAMES.get(name[1:], name[1:]) for name in toolsets if name.startswith(NOT)}
    for name in [*TOOLSETS, *current_config().servers] if ALL in named else named:
        if name not in left_out and not name.startswith(NOT):
            yield from [tool.name for tool in TOOLSETS[name]] if name in TOOLSETS else [mcp.PREFIX + name]


def tools_of(agent: Agent) -> dict[str, Tool]:
    """Return the tools of this agent under its own policy."""
    return tools_under(policy_of(agent).policy, agent)


def tools_under(policy: Policy, agent: Agent, dialog: Dialog | None = None) -> dict[str, Tool]:
    """Return this agent's tools by name, in an order that stays the same. A proxy gets none.

    Extensions may offer other tools in a ``dialog`` than to the agent in general.
    """
    if not agent.kind.is_guided:
        return {}
    builtin = builtin_tools()
    offered = {name: tool for name, tool in builtin.items() if tool.always}
    names = (*policy.tools, *agent.tools, *names_in(agent.toolsets))
    mcp.ask_at_once(names)
    for name in names:
        if name in builtin:
            offered[name] = builtin[name]
        elif name.startswith(mcp.PREFIX):
            for tool_name, tool in mcp.tools_named(name).items():
                offered.setdefault(tool_name, tool)  # a server's tool never replaces one of the product's
    for tools_for in _tools_of_extensions():
        for tool in tools_for(agent, dialog):
            offered.setdefault(tool.name, tool)
    return offered


@cache
def _tools_of_extensions() -> tuple[Callable[[Agent, Dialog | None], Iterable[Tool]], ...]:
    return tuple(import_string(extension.tools) for extension in installed_extensions() if extension.tools)


def tools_for_dialog(dialog: Dialog) -> dict[str, Tool]:
    """Return the agent's tools and then the client's, which never replace one of the product's."""
    offered = tools_under(policy_of(dialog.agent).policy, dialog.agent, dialog)
    for name, tool in _tools_of_client(dialog).items():
        offered.setdefault(name, tool)
    return offered


def _tools_of_client(dialog: Dialog) -> dict[str, Tool]:
    """Return the client's tools; none if the client wants no call and the agent has tools of its own."""
    client = client_of(dialog)
    if client is None or (client.required_tool == NO_TOOL and dialog.agent.kind.is_guided):
        return {}
    specs = [ToolSpec(**item) for item in client.tools]
    return {spec.name: Tool(spec) for spec in specs}
