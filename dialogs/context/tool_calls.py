"""Results of tool calls as turns. Each call gets one, even if it is never run."""

from dataclasses import dataclass
from enum import Enum

from dialogs.context.view import unresolved_calls
from dialogs.models import Turn
from dialogs.store.change import Change
from remediation.guidance import CLEAR_MIND


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result, as the model reads it. If it is ``unknown``, the call may or may not have taken effect."""

    text: str
    failed: bool = False
    unknown: bool = False

    @property
    def status(self) -> str:
        if self.unknown:
            return Turn.Status.UNKNOWN
        return Turn.Status.ERROR if self.failed else Turn.Status.OK


class Awaited(Enum):
    """The source of a result that a call does not have yet. The value names it in traces."""

    PERSON = "asked"
    ELSEWHERE = "later"  # other calls of the same reply run meanwhile


def store_result(change: Change, call_id: str, tool: str, result: Result, author_id: int | None = None) -> None:
    """Store a result. ``author_id`` is the person who allowed the call, or refused it."""
    change.turn(
        Turn.Role.TOOL,
        result.status,
        text=result.text,
        tool_call_id=call_id,
        tool_name=tool,
        author_id=author_id,
    )


def store_mind_cleared(change: Change, call_id: str) -> None:
    """Store the result of ``clear_mind``, in the round that the call ends."""
    store_result(change, call_id, CLEAR_MIND, Result("Mind cleared."))


def abandon(change: Change, why: str) -> None:
    """Store a result that says ``why`` for each call that will not run. The next request is then well formed, and no
    later run takes the call up.
    """
    for call in unresolved_calls(change.dialog):
        store_result(change, call.id, call.name, Result(why, failed=True))
