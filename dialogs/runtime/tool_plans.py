"""Plans for tool calls: whether a call runs, and with what. ``tool_runs`` performs them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dialogs.actions.question_rows import answers_for_tool, approval_of
from dialogs.context.tool_calls import Result
from dialogs.context.view import Call
from dialogs.models import Dialog, Turn
from dialogs.runtime.live_text import show_line
from dialogs.tools.tool import Invocation, Progress, Tool, ToolArgumentsInvalid, read_arguments
from dominds.llm.json_text import is_whole
from dominds.llm.stream import CUT_SHORT

UNKNOWN_OUTCOME = "The worker died while this ran; whether it took effect is not known. Check before you run it again."
EDITED = "[A person changed the arguments before they allowed the call, to: {}]\n"
CUT = (
    "Not run: the output that you may make ended inside this call, after {:,} characters of its arguments. "
    "Make it shorter, or do it in parts."
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the call without a run of its tool."""

    call: Call
    result: Result


@dataclass(frozen=True, slots=True)
class AskPermission:
    """Have a person allow the call."""

    tool: Tool
    invocation: Invocation


@dataclass(frozen=True, slots=True)
class RunInside:
    """Run the tool in the transaction that stores its result."""

    tool: Tool
    invocation: Invocation


@dataclass(frozen=True, slots=True)
class RunOutside:
    """Run the tool with no transaction open. Its result begins with ``note``."""

    call: Call
    tool: Tool
    invocation: Invocation
    note: str = ""


Plan = Answer | AskPermission | RunInside | RunOutside


def plan_call(dialog: Dialog, call: Call, tools: Mapping[str, Tool]) -> Plan:
    """Decide what to do about a call. Rows are read, and none is changed."""
    tool = tools.get(call.name)
    if tool is None:
        return _refuse(call, f"There is no tool {call.name!r}. Offered are: {', '.join(sorted(tools))}.")
    if not is_whole(call.arguments) and _was_cut(dialog, call):
        return _refuse(call, CUT.format(len(call.arguments)))
    try:
        arguments = read_arguments(tool, call.arguments)
    except ToolArgumentsInvalid as error:
        return _refuse(call, str(error))
    invocation = Invocation(dialog.pk, call.id, arguments, Progress(partial(show_line, dialog.pk, call.id)))
    return RunInside(tool, invocation) if tool.inside is not None else _plan_outside(dialog, call, tool, invocation)


def _plan_outside(dialog: Dialog, call: Call, tool: Tool, invocation: Invocation) -> Plan:
    """Plan a run that may need a person's permission. The person may have changed the arguments."""
    needs_approval = tool.needs_approval(dialog.agent.tool_approval)
    approval = approval_of(dialog, tool.identity, call) if needs_approval else None
    if approval is not None:
        call = replace(call, allowed_by=approval.resolved_by_id)
    if dialog.running_call == call.id and not tool.repeatable:  # the worker that ran it died
        return Answer(call, Result(UNKNOWN_OUTCOME, failed=True, unknown=True))
    if needs_approval and approval is None:
        return AskPermission(tool, invocation)
    note = ""
    if approval is not None and approval.edited_arguments:  # set only if the person allowed this call alone
        note = EDITED.format(approval.edited_arguments)
        try:
            invocation = replace(invocation, arguments=read_arguments(tool, approval.edited_arguments))
        except ToolArgumentsInvalid as error:
            return _refuse(call, f"{note}{error}")
    if tool.source:
        invocation = replace(invocation, answers=answers_for_tool(dialog, tool.identity, call))
    return RunOutside(call, tool, invocation, note)


def _refuse(call: Call, why: str) -> Answer:
    return Answer(call, Result(why, failed=True))


def _was_cut(dialog: Dialog, call: Call) -> bool:
    """Check whether the reply that made the call was cut off."""
    reply = dialog.turns.filter(role=Turn.Role.ASSISTANT, position=call.position)
    return reply.filter(generation__finish_reason__in=CUT_SHORT).exists()
