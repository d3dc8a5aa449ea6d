"""Calls to tools that run on the client's side of ``/v1``.

Such a call ends the run: its message is answered and the call left open, until the client sends the result and the same
message is worked on again.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from dialogs.actions import messages
from dialogs.context.tool_calls import Result
from dialogs.context.view import Call, unresolved_calls
from dialogs.errors import Conflict
from dialogs.models import Dialog, Turn
from dialogs.runtime import oversized_results
from dialogs.store.change import Change, change
from dialogs.tools.registry import offered_to
from remediation.guidance import CLEAR_MIND

UNANSWERED = Result("The client gave no result for this call and went on with another message.", failed=True)
BESIDE_CLEAR = Result("Not called: it stood beside clear_mind. Do one of both.", failed=True)


def of_client(dialog: Dialog, calls: Sequence[Call]) -> tuple[Call, ...]:
    """Those of the calls that the client runs."""
    offered = offered_to(dialog)
    return tuple(call for call in calls if call.name in offered and offered[call.name].is_clients)


def are_with_client(dialog: Dialog, calls: Sequence[Call]) -> bool:
    """Whether nothing is to be done about these calls, since their message is over and the client has them."""
    return dialog.answering_seq is None and not dialog.continuing and len(of_client(dialog, calls)) == len(calls)


def hand_over(unit: Change, calls: Sequence[Call], *, beside_clear: bool) -> None:
    """End the run, if the calls belong to the message under way; otherwise the model is told why there is no result."""
    if beside_clear:
        _refuse(unit, calls, BESIDE_CLEAR)
    elif unit.dialog.answering_seq is None or _answers(unit.dialog) != unit.dialog.answering_seq:
        _refuse(unit, calls, UNANSWERED)
    else:
        unit.end_message(Turn.Status.ANSWERED)


def clears_beside(calls: Sequence[Call]) -> bool:
    return any(call.name == CLEAR_MIND for call in calls)


def _answers(dialog: Dialog) -> int | None:
    """The message for which the newest reply was made."""
    newest = dialog.turns.filter(role=Turn.Role.ASSISTANT, status=Turn.Status.COMPLETE).order_by("-position")
    return newest.values_list("generation__answers_seq", flat=True).first()


def _refuse(unit: Change, calls: Sequence[Call], result: Result) -> None:
    for call in calls:
        _store(unit, call, result)
    unit.dialog.changed_since_rewrite = True


def _store(unit: Change, call: Call, result: Result) -> None:
    unit.turn(Turn.Role.TOOL, result.status, text=result.text, tool_call_id=call.id, tool_name=call.name)


def accept(dialog_id: UUID, results: Mapping[str, str]) -> int:
    """Store the client's results, by call id; the run goes on. Returns the seq of the message that it works for."""
    unusable = messages.unusable(dialog_id)
    with change(dialog_id) as unit:
        dialog = unit.dialog
        messages.check_open(dialog)
        if unusable:
            raise Conflict("agent_unusable", unusable)
        calls = unresolved_calls(dialog)
        if not calls or {call.id for call in calls} != set(results) or dialog.is_leased:
            raise Conflict("tool_calls_not_open", "These are not the results that the dialog waits for.")
        for call in calls:
            _store(unit, call, oversized_results.fitted(dialog, call.id, Result(results[call.id])))
        message = dialog.turns.filter(role=Turn.Role.USER, position__isnull=False).order_by("-position").first()
        if message is None:
            raise Conflict("tool_calls_not_open", "The dialog has no message that these results belong to.")
        unit.mark(message.seq, Turn.Status.ANSWERING)
        unit.begin_message(message.seq)
        if message.round_number != dialog.round_number:
            messages.carry(dialog, message.seq)
        unit.wakes = True
    return message.seq
