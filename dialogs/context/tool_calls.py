"""What tool calls came to, as turns: each call that was made has a result, also when it was never run."""

from dialogs.context.view import Call, unresolved_calls
from dialogs.models import Turn
from dialogs.store.change import Change
from dialogs.tools.tool import Result


def store_result(unit: Change, call: Call, result: Result, status: str = "") -> None:
    unit.turn(
        Turn.Role.TOOL,
        status or result.status,
        text=result.text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode(),
        tool_call_id=call.id,
        tool_name=call.name,
    )


def abandon(unit: Change, why: str) -> None:
    """Give the calls that will not run a result that says so: the next request is well formed, and no later run finds
    them still owed."""
    for call in unresolved_calls(unit.dialog):
        store_result(unit, call, Result(why, failed=True))
