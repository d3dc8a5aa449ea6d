"""What a client of ``/v1`` brings to a dialog: instructions after the agent's, and tools that run on its side."""

from dialogs.models import Client, Dialog
from dialogs.tools.registry import tools_of
from dialogs.tools.tool import Tool
from dominds.llm.messages import ToolSpec


def client_of(dialog: Dialog) -> Client | None:
    """No query when the dialog was read with its ``client``."""
    return getattr(dialog, "client", None)


def instructions_of(dialog: Dialog) -> str:
    """The agent's, and after them what the client's system messages say."""
    client = client_of(dialog)
    return "\n\n".join(text for text in (dialog.agent.instructions, client.instructions if client else "") if text)


def offered_to(dialog: Dialog) -> dict[str, Tool]:
    """The agent's tools and then the client's, which never take the place of one of ours."""
    offered = tools_of(dialog.agent)
    for name, tool in _tools_of(dialog).items():
        offered.setdefault(name, tool)
    return offered


def _tools_of(dialog: Dialog) -> dict[str, Tool]:
    client = client_of(dialog)
    specs = [ToolSpec(item["name"], item["description"], item["parameters"]) for item in client.tools] if client else []
    return {spec.name: Tool(spec) for spec in specs}


def required_tool_of(dialog: Dialog) -> str:
    """The tool that the client insists on for the next answer, or nothing."""
    client = client_of(dialog)
    return client.required_tool if client else ""
