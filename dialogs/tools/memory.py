"""Tools for the agent's own memory: reminders, which every request repeats, and clearing its mind."""

from dialogs.actions import reminders, rounds
from dialogs.context.tool_calls import Result
from dialogs.store.change import Change
from dialogs.tools.tool import Invocation, Tool, explain_refusals, parameters
from dominds.llm.messages import ToolSpec
from remediation.guidance import CLEAR_MIND, says_nothing


def clear_mind(change: Change, call: Invocation) -> Result:
    package = str(call.arguments["reminder_content"])
    if says_nothing(package):
        return Result(
            "reminder_content says nothing. Write the re-entry package that you want to go on from.", failed=True
        )
    rounds.clear_within(change, package, cause="clear_mind")
    return Result("Mind cleared.")


def _count_ahead(call: Invocation) -> None:
    reminders.count_ahead(call.dialog_id, str(call.arguments["content"]))


@explain_refusals
def add_reminder(change: Change, call: Invocation) -> Result:
    content = str(call.arguments["content"])
    if says_nothing(content):
        return Result("content says nothing. Write what you want to keep in sight.", failed=True)
    row = reminders.add_within(change, content, call.arguments.get("position"))
    return Result(f"Reminder {row.pk} added.")


@explain_refusals
def update_reminder(change: Change, call: Invocation) -> Result:
    reminders.update_within(change, int(call.arguments["id"]), text=str(call.arguments["content"]))
    return Result("Reminder updated.")


@explain_refusals
def delete_reminder(change: Change, call: Invocation) -> Result:
    reminders.delete_within(change, int(call.arguments["id"]))
    return Result("Reminder deleted.")


_TEXT = {"type": "string"}
_ID = {"type": "integer", "description": "the number in [reminder N]"}

TOOLS = (
    Tool(
        ToolSpec(
            CLEAR_MIND,
            "Start a fresh round. Everything said so far leaves your sight; reminders stay, and reminder_content, your "
            "re-entry package, comes first. Messages that wait for an answer come along.",
            parameters(["reminder_content"], reminder_content={**_TEXT, "description": "the re-entry package"}),
        ),
        inside=clear_mind,
        always=True,
    ),
    Tool(
        ToolSpec(
            "add_reminder",
            "Keep a text in sight in every request until you delete it.",
            parameters(
                ["content"],
                content=_TEXT,
                position={"type": "integer", "minimum": 0, "description": "place in the list; 0 is first"},
            ),
        ),
        inside=add_reminder,
        ahead=_count_ahead,
        always=True,
    ),
    Tool(
        ToolSpec("update_reminder", "Replace a reminder's text.", parameters(["id", "content"], id=_ID, content=_TEXT)),
        inside=update_reminder,
        ahead=_count_ahead,
        always=True,
    ),
    Tool(
        ToolSpec("delete_reminder", "Delete a reminder.", parameters(["id"], id=_ID)),
        inside=delete_reminder,
        always=True,
    ),
)
