"""What a client of ``/v1`` brings to a dialog: instructions after the agent's, settings of its own, the tool it insists on."""

from typing import Any

from dialogs.models import Client, Dialog


def client_of(dialog: Dialog) -> Client | None:
    """No query when the dialog was read with its ``client``."""
    return getattr(dialog, "client", None)


def instructions_of(dialog: Dialog) -> str:
    """The agent's, and after them what the client's system messages say."""
    client = client_of(dialog)
    return "\n\n".join(text for text in (dialog.agent.instructions, client.instructions if client else "") if text)


def params_of(dialog: Dialog) -> dict[str, Any]:
    """What the client's newest request asks of the model, in the words of chat completions."""
    client = client_of(dialog)
    return (client.params if client else None) or {}


def required_tool_of(dialog: Dialog) -> str:
    """The tool that the client insists on for the next answer, ``ANY_TOOL``, or nothing."""
    client = client_of(dialog)
    return client.required_tool if client else ""
