"""A dialog at the head of a team."""

from dialogs.extras.teams import side_dialogs, task_document
from dialogs.models import Agent, Dialog
from dialogs.store.change import open_change
from tests.dialogs.factories import AgentFactory


def make_lead(dialog: Dialog) -> Dialog:
    """Let the dialog's agent ask another one, and write a task document. Return the dialog."""
    other = AgentFactory.create()
    Agent.objects.filter(pk=dialog.agent_id).update(extras={"colleagues": [other.pk]})
    with open_change(dialog.pk) as change:
        side_dialogs.ask(change, side_dialogs.Ask("call_1_1", other.pk, "Find the hut"))
    task_document.edit(dialog, "goal", "A night in the hut.", 0)
    return dialog
