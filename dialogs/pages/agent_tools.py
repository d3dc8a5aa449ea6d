"""The tools that an agent may have, by their source: those to tick in its form, and those that it has."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from dialogs.context.limits import policy_of
from dialogs.context.served import served_or_unknown
from dialogs.models import Agent
from dialogs.tools import mcp
from dialogs.tools.mcp_config import current_config
from dialogs.tools.offer import offer
from dialogs.tools.registry import TOOLSETS, builtin_tools, tools_of
from dialogs.tools.tool import Tool
from dominds.llm.catalog.catalog import UnknownModel

# The uses of the product's own tools in words for people. The tools' descriptions are written for models.
USES = {
    "clear_mind": gettext_noop("Starts afresh, with a summary of what matters"),
    "add_reminder": gettext_noop("Keeps a note in sight"),
    "update_reminder": gettext_noop("Changes a note"),
    "delete_reminder": gettext_noop("Deletes a note"),
    "ask_human": gettext_noop("Asks a person, and waits for the answer"),
    "search_archive": gettext_noop("Finds earlier passages of the conversation"),
    "read_archive": gettext_noop("Reads an earlier passage whole"),
    "read_artifact": gettext_noop("Reads on in a long result"),
    "complete_milestone": gettext_noop("Says that a milestone is reached, so that its steps may be put away"),
    "read_file": gettext_noop("Reads a text file of the shared folder"),
    "list_files": gettext_noop("Lists the files of the shared folder"),
}


@dataclass(frozen=True, slots=True)
class Group:
    """The tools of one source.

    An agent with ``name`` among its toolsets has all of them; an agent can also name some among its tools. ``tools`` is
    None until the server has been asked. ``off`` is the reason why no tool of the group can be used, or empty.
    """

    name: str
    title: str
    tools: tuple[tuple[str, Tool], ...] | None
    off: str = ""

    def __iter__(self) -> Iterator[tuple[str, Tool, str]]:
        """Yield the name by which an agent lists each tool, the tool, and what it does."""
        for name, tool in self.tools or ():
            yield name, tool, use_of(tool)


def use_of(tool: Tool) -> str:
    """Return what a tool does, in words for people where there are any."""
    return _(USES.get(tool.name, tool.spec.description))


def groups_to_tick(*, ask: bool) -> list[Group]:
    """Return the tools that an agent's form offers. With ``ask`` servers whose lists are unknown are asked now."""
    config, prefix = current_config(), mcp.PREFIX
    if ask:
        mcp.ask_at_once(prefix + name for name in config.servers)
    in_sets = {tool.name for tools in TOOLSETS.values() for tool in tools}
    own = [tool for tool in builtin_tools().values() if not tool.always and tool.name not in in_sets]
    result = [Group("", _("Of Dominds"), tuple((tool.name, tool) for tool in own))] if own else []
    for name, tools in TOOLSETS.items():
        result.append(Group(name, _("Shared folder"), tuple((tool.name, tool) for tool in tools), off=_why_no_folder()))
    for name, server in config.servers.items():
        listed = mcp.tools_of_server(server, ask=ask)
        named = None if listed is None else tuple((f"{prefix}{name}/{original}", tool) for original, tool in listed)
        result.append(Group(name, name, named))
    return [*result, *(Group(name, name, (), off=reason) for name, reason in config.off.items())]


def _why_no_folder() -> str:
    """Return how to make the shared folder, which a new installation lacks, or an empty text if it is there."""
    if settings.WORKSPACE_DIR.is_dir():
        return ""
    words = _("There is none yet: make {folder} on the server, and put into it what agents may read.")
    return format_html(words, folder=format_html("<code>{}</code>", settings.WORKSPACE_DIR))


def names_beside(groups: list[Group], ticked: set[str]) -> list[str]:
    """Return the ticked names that no group offers, so that saving the form does not lose them."""
    offered = {group.name for group in groups} | {name for group in groups for name, _tool in group.tools or ()}
    return sorted(ticked - offered)


def tools_had_by(agent: Agent) -> tuple[list[tuple[Tool, str]], list[tuple[Tool, str]]]:
    """Return two lists of tools with their uses: the tools of every agent and of the policy, which concern nothing but
    the conversation, and the agent's own tools. Its servers are asked for theirs.
    """
    usual, own = list[tuple[Tool, str]](), list[tuple[Tool, str]]()
    of_policy = policy_of(agent).policy.tools
    for name, tool in tools_of(agent).items():
        (usual if tool.always or name in of_policy else own).append((tool, use_of(tool)))
    return usual, own


def left_out_of(agent: Agent) -> tuple[str, ...]:
    """Return the names of the standard tools for which the window of the agent's model has no room."""
    served = served_or_unknown(agent)
    return () if isinstance(served, UnknownModel) else offer(tools_of(agent), served, agent.instructions).left_out
