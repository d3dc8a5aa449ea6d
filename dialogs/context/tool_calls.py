"""What tool calls came to, as turns: each call that was made has a result, also when it was never run."""

from dataclasses import dataclass

from dialogs.context.view import Call, unresolved_calls
from dialogs.models import Turn
from dialogs.store.change import Change


@dataclass(frozen=True, slots=True)
class Result:
    """What the model is told. ``pending`` means that a human answers later: there is no result yet."""

    text: str
    failed: bool = False
    pending: bool = False

    @property
    def status(self) -> str:
        return Turn.Status.ERROR if self.failed else Turn.Status.OK


def store_result(change: Change, call: Call, result: Result, status: str = "") -> None:
    change.turn(
        Turn.Role.TOOL,
        status or result.status,
        text=result.text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode(),
        tool_call_id=call.id,
        tool_name=call.name,
    )


def abandon(change: Change, why: str) -> None:
    """Give the calls that will not run a result that says so: the next request is well formed, and no later run finds
    them still owed."""
    for call in unresolved_calls(change.dialog):
        store_result(change, call, Result(why, failed=True))
