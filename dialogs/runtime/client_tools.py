"""Calls to tools that run on the client's side of ``/v1``.

Such a call ends the run: its message counts as answered, and the call stays open until the client sends the result,
after which work on the same message goes on.
"""

from collections.abc import Mapping, Sequence

from dialogs.actions import messages
from dialogs.context.tool_calls import Result, store_result
from dialogs.context.view import Call, unresolved_calls
from dialogs.errors import Conflict
from dialogs.models import Dialog, Drive, Turn
from dialogs.runtime.oversized_results import Judged, keep_whole
from dialogs.store.change import Change
from dialogs.tools.registry import tools_for_dialog, tools_of
from remediation.guidance import CLEAR_MIND

UNANSWERED = Result("The client gave no result for this call and went on with another message.", failed=True)
BESIDE_CLEAR = Result("Not called: it came together with clear_mind. Call one of the two.", failed=True)


def client_calls(dialog: Dialog, calls: Sequence[Call]) -> tuple[Call, ...]:
    """Return the calls that the client runs. A proxy's client runs all of them, whether or not it offered the tool."""
    if not dialog.agent.kind.is_guided:
        return tuple(calls)
    offered = tools_for_dialog(dialog)
    return tuple(call for call in calls if call.name in offered and offered[call.name].is_clients)


def wait_for_client(dialog: Dialog, calls: Sequence[Call]) -> bool:
    """Check whether the dialog waits for the client: all calls are the client's, and their message has ended."""
    return _has_ended(dialog) and len(client_calls(dialog, calls)) == len(calls)


def _has_ended(drive: Drive) -> bool:
    return drive.answering_seq is None and not drive.continuing


def hand_over(change: Change, calls: Sequence[Call], *, beside_clear: bool) -> None:
    """End the message if the calls belong to the one under way. Otherwise tell the model why there is no result."""
    if beside_clear:
        _refuse(change, calls, BESIDE_CLEAR)
    elif change.dialog.answering_seq is None or _message_of_newest_reply(change.dialog) != change.dialog.answering_seq:
        _refuse(change, calls, UNANSWERED)
    else:
        change.end_message(Turn.Status.ANSWERED)


def has_clear(calls: Sequence[Call]) -> bool:
    return any(call.name == CLEAR_MIND for call in calls)


def _message_of_newest_reply(dialog: Dialog) -> int | None:
    """Return the message that the newest reply answered."""
    newest = dialog.turns.filter(role=Turn.Role.ASSISTANT, status=Turn.Status.COMPLETE).order_by("-position")
    return newest.values_list("generation__answers_seq", flat=True).first()


def _refuse(change: Change, calls: Sequence[Call], result: Result) -> None:
    for call in calls:
        store_result(change, call.id, call.name, result)
    change.dialog.changed_since_rewrite = True


def accept_within(change: Change, results: Mapping[str, Judged], *, goes_on: bool) -> Turn:
    """Store the client's results by call id, and return the message that they belong to. The run goes on, unless a new
    message comes with them.

    The results were judged before any row was locked. The worker that handed the calls over may still hold the dialog,
    and then goes on itself. The request with the results may offer other tools than those that were called, or none
    when it wants a last answer.
    """
    dialog = change.dialog
    calls, own_tools = unresolved_calls(dialog), tools_of(dialog.agent)
    are_clients = _has_ended(dialog) and not any(call.name in own_tools for call in calls)
    if not calls or {call.id for call in calls} != set(results) or not are_clients:
        raise Conflict("tool_calls_not_open", "These are not the results that the dialog waits for.")
    for call in calls:
        store_result(change, call.id, call.name, keep_whole(dialog.pk, call.id, results[call.id]))
    message = messages.newest_message(dialog)
    if message is None:
        raise Conflict("tool_calls_not_open", "The dialog has no message that these results belong to.")
    if goes_on:
        messages.answer_again(change, message)
    return message
