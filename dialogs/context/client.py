"""What a client of ``/v1`` brings to a dialog: instructions after the agent's, and the tool it insists on."""

from dialogs.models import Client, Dialog


def client_of(dialog: Dialog) -> Client | None:
    """No query when the dialog was read with its ``client``."""
    return getattr(dialog, "client", None)


def instructions_of(dialog: Dialog) -> str:
    """The agent's, and after them what the client's system messages say."""
    client = client_of(dialog)
    return "\n\n".join(text for text in (dialog.agent.instructions, client.instructions if client else "") if text)


def required_tool_of(dialog: Dialog) -> str:
    """The tool that the client insists on for the next answer, or nothing."""
    client = client_of(dialog)
    return client.required_tool if client else ""
