"""The tools of an agent that has colleagues."""

from collections.abc import Iterable

from dialogs.context.tool_calls import Awaited, Result
from dialogs.extras.teams import side_dialogs, sight, task_document
from dialogs.extras.teams.reports import ASK_AGENT
from dialogs.extras.teams.side_dialogs import Ask
from dialogs.models import Agent, Dialog
from dialogs.store.change import Change
from dialogs.tools.tool import Invocation, Tool, explain_refusals, parameters
from dominds.llm.messages import ToolSpec

_TEXT = {"type": "string", "minLength": 1}
_NAME = {**_TEXT, "maxLength": 60}


def tools_for(agent: Agent, dialog: Dialog | None) -> Iterable[Tool]:
    """Return the tools of an agent that may ask others; one that was asked reads and edits the task document."""
    colleagues = agent.stated_extras.get("colleagues", ())
    if colleagues:
        return (_ask_tool(colleagues), *TOOLS, *TASK_TOOLS)
    return TASK_TOOLS if dialog and dialog.origin == Dialog.Origin.AGENT else ()


def _ask_tool(colleagues: Iterable[str]) -> Tool:
    return Tool(
        ToolSpec(
            ASK_AGENT,
            "Ask a colleague, who works in a side dialog with an empty context and sees nothing but the task. Its last "
            "answer comes back as this call's result.",
            parameters(
                ["agent", "task"],
                agent={"type": "string", "enum": list(colleagues)},
                task={**_TEXT, "description": "all that it needs to know"},
                name={**_NAME, "description": "of the side dialog, to go on in it later"},
                wait={"type": "boolean", "description": "false: go on at once; the report comes later as a message"},
            ),
        ),
        inside=ask_agent,
    )


@explain_refusals
def ask_agent(change: Change, call: Invocation) -> Result | Awaited:
    given = call.arguments
    asked = Ask(
        call.call_id, given["agent"], given["task"].strip(), given.get("name", "").strip(), given.get("wait", True)
    )
    side = side_dialogs.ask(change, asked)
    if asked.waits and side.answered_at is None and side.ended_at is None:
        return Awaited.ELSEWHERE
    return Result(f"Asked in the side dialog {side.name}. Its report comes as a message.")


def list_side_dialogs(change: Change, call: Invocation) -> Result:
    rows = sight.of_parent(change.dialog)
    return Result("\n".join(map(sight.describe, rows)) or "There are no side dialogs.")


@explain_refusals
def tell_agent(call: Invocation) -> Result:
    """Run outside a transaction, since the row of a side dialog is never locked after that of its parent."""
    name, text = str(call.arguments["name"]), str(call.arguments["text"])
    side = side_dialogs.tell(call.dialog_id, name, text, call.call_id)
    return Result(f"{side.name} reads it after what it does now.")


@explain_refusals
def stop_agent(change: Change, call: Invocation) -> Result:
    side = sight.find(change.dialog, str(call.arguments["name"]))
    side_dialogs.end(sight.with_those_below([side]), "its parent ended it")
    sight.keep_in_sight(change)
    return Result(f"{side.name} has ended.")


def read_task(change: Change, call: Invocation) -> Result:
    return Result(task_document.as_text(task_document.newest(task_document.root_of(change.dialog))))


@explain_refusals
def edit_task(change: Change, call: Invocation) -> Result:
    given = call.arguments
    revision = task_document.edit(change.dialog, given["section"], given["text"], given["version"])
    return Result(f"Written. The task document is at version {revision.version}.")


TASK_TOOLS = (
    Tool(
        ToolSpec("read_task", "Read the task document of the team.", parameters([])),
        inside=read_task,
    ),
    Tool(
        ToolSpec(
            "edit_task",
            "Write one section of the team's task document anew.",
            parameters(
                ["section", "text", "version"],
                section={"type": "string", "enum": list(task_document.SECTIONS)},
                text={"type": "string"},
                version={"type": "integer", "minimum": 0, "description": "the version that you have read"},
            ),
        ),
        inside=edit_task,
    ),
)

TOOLS = (
    Tool(
        ToolSpec("side_dialogs", "List your side dialogs: who works on what, and how each stands.", parameters([])),
        inside=list_side_dialogs,
    ),
    Tool(
        ToolSpec(
            "tell_agent",
            "Send a message to a side dialog that is at work.",
            parameters(["name", "text"], name=_NAME, text=_TEXT),
        ),
        outside=tell_agent,
    ),
    Tool(
        ToolSpec("stop_agent", "End a side dialog, and all below it, for good.", parameters(["name"], name=_NAME)),
        inside=stop_agent,
    ),
)
