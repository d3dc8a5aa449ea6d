"""Runs of the tool calls of a kept reply, each result of which is stored in a transaction of its own."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import Enum, auto
from functools import partial

import structlog
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from dialogs.actions.question_rows import answers_for_tool, approval_of, ask_for_approval, ask_for_tool
from dialogs.context.config import current_config
from dialogs.context.tool_calls import Result, store_mind_cleared, store_result
from dialogs.context.view import Call, unresolved_calls
from dialogs.models import Dialog, Round, Turn
from dialogs.runtime import client_tools, oversized_results, tracing
from dialogs.runtime.live_text import show_line
from dialogs.store.change import Change, LeaseLost
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease, release
from dialogs.tools.registry import tools_for_dialog
from dialogs.tools.retrying import run_with_retries
from dialogs.tools.tool import AsksPerson, Invocation, Progress, Stopped, Tool, ToolArgumentsInvalid, read_arguments
from dominds.llm.json_text import is_whole
from dominds.llm.stream import CUT_SHORT
from remediation.config import RetryPolicy
from remediation.guidance import CLEAR_MIND

log = structlog.get_logger(__name__)

UNKNOWN_OUTCOME = "The worker died while this ran; whether it took effect is not known. Check before you run it again."
STOPPED = "A person pressed stop while this ran. It did not end."
STOPPED_UNKNOWN = (
    "A person pressed stop while this ran; whether it took effect is not known. Check before you run it again."
)
LOOK_AGAIN_SECONDS = 60  # a dialog that waits for results is woken after this time, even if no result woke it

EDITED = "[A person changed the arguments before they allowed the call, to: {}]"
# The bracket that opens a statement about a person's decision. Only the runtime may write one.
PERSONS_DECISION = re.compile(r"\[(?=(?:The tool was not run\. A person|A person changed the arguments))")
CUT = (
    "Not run: the output that you may make ended inside this call, after {:,} characters of its arguments. "
    "Make it shorter, or do it in parts."
)


class Ran(Enum):
    """The progress of a call: its result is stored, or comes later from elsewhere, or a human was asked."""

    DONE = auto()
    LATER = auto()
    ASKED = auto()


def pending_calls(dialog: Dialog) -> tuple[Call, ...]:
    """Return the calls of the last reply that are to run here."""
    calls = unresolved_calls(dialog) if dialog.newest_reply_calls else ()
    return () if calls and client_tools.wait_for_client(dialog, calls) else calls


def run(lease: Lease, dialog: Dialog, calls: tuple[Call, ...]) -> None:
    """Run the calls in the model's order, ``clear_mind`` last, and stop between calls if asked to.

    Calls that a client of ``/v1`` runs are handed over when the others are done. While a result is still to come from
    elsewhere, the other calls run and no worker waits. A clear, and calls for a client, wait for it.
    """
    tools = tools_for_dialog(dialog)
    clients = client_tools.client_calls(dialog, calls)
    beside_clear = client_tools.has_clear(calls)
    if clients and beside_clear:
        _hand_over(lease, clients, beside_clear=True)
    clears = [call for call in calls if call.name == CLEAR_MIND]
    awaited: list[Call] = []
    for call in sorted(calls, key=lambda call: call.name == CLEAR_MIND):
        if call in clients:
            continue
        if lease.stopping or not lease.holds:
            return
        if call in clears and awaited:
            break
        if call in clears and len(clears) > 1:  # two clears in one reply are invalid, as in a forced attempt
            refusal = f"Refused: clear_mind was called {len(clears)} times. Call it once."
            _store(lease, call, Result(refusal, failed=True))
        else:
            with tracing.running_tool(dialog, call) as span:
                ran = _run_one(lease, dialog, call, tools.get(call.name))
                span.set_attribute("dominds.tool.outcome", ran.name.lower())
            if ran is Ran.ASKED:
                return
            if ran is Ran.LATER:
                awaited.append(call)
    if awaited:
        _await_results(lease, awaited)
    elif clients and not beside_clear:
        _hand_over(lease, clients, beside_clear=False)


@commits
def _hand_over(lease: Lease, calls: tuple[Call, ...], *, beside_clear: bool) -> None:
    """Hand calls to the client in the commit that ends the run, so that a fast client finds the dialog at rest."""
    with lease.change() as change:
        client_tools.hand_over(change, calls, beside_clear=beside_clear)
        change.take_next_message()
        ended = not change.dialog.has_work
        if ended:
            release(change)
    lease.released = lease.released or ended


@commits
def _await_results(lease: Lease, calls: Sequence[Call]) -> None:
    """End the run until its results have come.

    Whoever stores the last of them wakes the dialog, and no worker is held until then. The run goes on at once if a
    result or a stop came meanwhile.
    """
    with lease.change() as change:
        unresolved = {call.id for call in unresolved_calls(change.dialog)}
        ended = not change.dialog.stop_requested and all(call.id in unresolved for call in calls)
        if ended:
            change.dialog.wake_at = Now() + timedelta(seconds=LOOK_AGAIN_SECONDS)
            release(change)
    lease.released = lease.released or ended


def _run_one(lease: Lease, dialog: Dialog, call: Call, tool: Tool | None) -> Ran:
    """Run one call, unless its tool is unknown, its arguments are unusable, or a person has to allow it first."""
    if tool is None:
        offered = ", ".join(sorted(tools_for_dialog(dialog)))
        return _store(lease, call, Result(f"There is no tool {call.name!r}. Offered are: {offered}.", failed=True))
    if not is_whole(call.arguments) and _was_cut(dialog, call):
        return _store(lease, call, Result(CUT.format(len(call.arguments)), failed=True))
    try:
        progress = Progress(partial(show_line, dialog.pk, call.id))
        invocation = Invocation(dialog.pk, call.id, read_arguments(tool, call.arguments), progress)
    except ToolArgumentsInvalid as error:
        return _store(lease, call, Result(str(error), failed=True))
    if tool.inside is not None:
        return _run_in_transaction(lease, call, tool, invocation)
    is_unknown = dialog.running_call == call.id and not tool.repeatable  # the worker that ran it died
    edited = ""
    if tool.needs_approval(dialog.agent.tool_approval):
        if approval := approval_of(dialog, tool.identity, call):
            call = replace(call, allowed_by=approval.resolved_by_id)
            edited = approval.edited_arguments  # set only if a person allowed this call alone
        elif not is_unknown:
            return _ask(lease, call, tool, invocation)
    if edited:
        try:
            invocation = replace(invocation, arguments=read_arguments(tool, edited))
        except ToolArgumentsInvalid as error:
            return _store(lease, call, Result(f"{EDITED.format(edited)}\n{error}", failed=True))
    if is_unknown:
        return _store(lease, call, Result(UNKNOWN_OUTCOME, failed=True), status=Turn.Status.UNKNOWN)
    if not tool.repeatable:
        with lease.change() as change:
            change.dialog.running_call = call.id
    if tool.source:
        invocation = replace(invocation, answers=answers_for_tool(dialog, tool.identity, call))
    connection.close()
    try:
        result = _run_outside(lease, tool, invocation)
    except AsksPerson as asks:
        return _ask_for_tool(lease, call, tool, asks)
    except Stopped:
        if tool.repeatable:
            return _store(lease, call, Result(STOPPED, failed=True))
        return _store(lease, call, Result(STOPPED_UNKNOWN, failed=True), status=Turn.Status.UNKNOWN)
    result = replace(result, text=PERSONS_DECISION.sub("(", result.text))  # a tool must not speak as a person
    if edited:
        result = replace(result, text=f"{EDITED.format(edited)}\n{result.text}")
    return _store(lease, call, oversized_results.fit(dialog, call.id, result))


@commits
def _ask(lease: Lease, call: Call, tool: Tool, invocation: Invocation) -> Ran:
    """Have a person allow the call, which runs when the dialog is driven again."""
    with lease.change() as change:
        if change.dialog.is_leased:  # false when a commit is repeated that had succeeded
            change.dialog.running_call, change.dialog.crashes = "", 0
            ask_for_approval(change, tool.identity, call, invocation.arguments)
            release(change)
    return Ran.ASKED


@commits
def _ask_for_tool(lease: Lease, call: Call, tool: Tool, asks: AsksPerson) -> Ran:
    """Have a person answer a question of a running tool. The tool runs once more when they have answered."""
    with lease.change() as change:
        if change.dialog.is_leased:  # false when a commit is repeated that had succeeded
            change.dialog.running_call, change.dialog.crashes = "", 0
            ask_for_tool(change, tool.identity, call, asks.text, asks.choices)
            release(change)
    return Ran.ASKED


def _was_cut(dialog: Dialog, call: Call) -> bool:
    """Check whether the reply that made the call was cut off."""
    reply = dialog.turns.filter(role=Turn.Role.ASSISTANT, position=call.position)
    return reply.filter(generation__finish_reason__in=CUT_SHORT).exists()


def _run_in_transaction(lease: Lease, call: Call, tool: Tool, invocation: Invocation) -> Ran:
    """Run a tool in a transaction. A failed run has been rolled back, and so can be repeated."""
    try:
        if tool.ahead is not None:
            tool.ahead(invocation)
        run = partial(_store_made, lease, call, lambda change: _run_inside(change, call, tool, invocation))
        return run_with_retries(run, tool, invocation, _policy_for, partial(_pause, lease))
    except (LeaseLost, OperationalError):
        raise
    except Exception as error:  # noqa: BLE001  a tool's bug is its result; _failure_result logs it
        return _store(lease, call, _failure_result(tool, invocation, error))


def _run_outside(lease: Lease, tool: Tool, invocation: Invocation) -> Result:
    assert tool.outside is not None
    run, progress = partial(tool.outside, invocation), invocation.progress
    try:
        with lease.interruptible(lambda: progress.stop() if lease.stopping else None):  # a draining worker lets it end
            return run_with_retries(run, tool, invocation, _policy_for, partial(_pause, lease))
    except (Stopped, AsksPerson):
        raise
    except Exception as error:  # noqa: BLE001  a tool's bug is its result, not the dialog's end, and is logged
        return _failure_result(tool, invocation, error)


def _failure_result(tool: Tool, invocation: Invocation, error: Exception) -> Result:
    log.error("tool_failed", tool=tool.name, dialog_id=str(invocation.dialog_id), exc_info=error)
    return Result(f"{tool.name} failed: {error}", failed=True)


def _policy_for(tool: str) -> RetryPolicy:
    """Return the retry policy of a tool. No connection is held while a tool waits for its next try."""
    try:
        return current_config().retry_policies.policy_for(tool)
    finally:
        connection.close()


def _pause(lease: Lease, seconds: float) -> bool:
    lease.pause(seconds)
    return lease.holds and not lease.stopping


def _store(lease: Lease, call: Call, result: Result, status: str = "") -> Ran:
    return _store_made(lease, call, lambda change: result, status)


@commits
def _store_made(lease: Lease, call: Call, make: Callable[[Change], Result], status: str = "") -> Ran:
    """Make a result, and store it in the same transaction."""
    with lease.change() as change:
        # The commit may be repeated after it succeeded. Then the run has ended, or the result is there, as it is if it
        # came from elsewhere.
        if not change.dialog.is_leased:
            return Ran.ASKED
        if _results(change.dialog, call).filter(tool_call_id=call.id).exists():
            return Ran.DONE
        result = make(change)
        change.dialog.running_call, change.dialog.crashes = "", 0
        change.dialog.changed_since_rewrite = True
        if result.failed:
            tracing.note_failed_tool()
        if result.later:
            return Ran.LATER
        if result.pending:
            release(change)
            return Ran.ASKED
        if call.name != CLEAR_MIND or result.failed:
            store_result(change, call.id, call.name, result, status, call.allowed_by)
        return Ran.DONE


_BESIDE_A_FAILURE = Result(
    "Refused: another tool call of the same answer failed. Look at its result first.", failed=True
)
_CLEARED_ALREADY = Result(
    "Refused: your mind was cleared for this message already, and you have done nothing since. The message stands here "
    "because it still waits for your answer. Give it.",
    failed=True,
)


def _refused_clear(dialog: Dialog, call: Call) -> Result | None:
    if _sibling_failed(dialog, call):
        return _BESIDE_A_FAILURE
    return _CLEARED_ALREADY if _has_cleared_for_this_message(dialog) else None


def _has_cleared_for_this_message(dialog: Dialog) -> bool:
    """Check whether the mind was cleared for the message under way, and nothing but ``clear_mind`` was called since.

    A message that asks for a clear stands again behind the new package, so the model would clear without end.
    """
    begun = dialog.rounds.get(number=dialog.round_number)
    if begun.cause != Round.Cause.CLEAR_MIND or dialog.answering_seq not in begun.carried:
        return False
    replies = dialog.turns.filter(role=Turn.Role.ASSISTANT, round_number=dialog.round_number)
    calls = replies.values_list("tool_calls", flat=True)
    return all(reply and all(made["name"] == CLEAR_MIND for made in reply) for reply in calls)


def _run_inside(change: Change, call: Call, tool: Tool, invocation: Invocation) -> Result:
    """Run a tool inside the change, unless it is a clear that must be refused.

    The result of a clear belongs to the round that it ends, so it is stored first.
    """
    assert tool.inside is not None
    if call.name == CLEAR_MIND:
        if refused := _refused_clear(change.dialog, call):
            return refused
        if str(invocation.arguments.get("reminder_content", "")).strip():
            store_mind_cleared(change, call.id)
    return tool.inside(change, invocation)


def _sibling_failed(dialog: Dialog, call: Call) -> bool:
    failed = [Turn.Status.ERROR, Turn.Status.UNKNOWN]
    return _results(dialog, call).filter(tool_call_id__in=call.siblings, status__in=failed).exists()


def _results(dialog: Dialog, call: Call) -> QuerySet[Turn]:
    """Return the results of calls of the same reply."""
    return dialog.turns.filter(role=Turn.Role.TOOL, position__gt=call.position)
