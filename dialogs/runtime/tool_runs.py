"""Runs of the tool calls of a kept reply, each result of which is stored in a transaction of its own."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import structlog
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from dialogs.actions.question_rows import ask_for_approval, ask_for_tool
from dialogs.context.config import current_config
from dialogs.context.tool_calls import Awaited, Result, store_mind_cleared, store_result
from dialogs.context.view import Call, unresolved_calls
from dialogs.models import Dialog, Round, Turn
from dialogs.runtime import client_tools, oversized_results, tracing
from dialogs.runtime.tool_plans import Answer, AskPermission, RunInside, RunOutside, plan_call
from dialogs.store.change import Change, LeaseLost
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease, release
from dialogs.tools.registry import tools_for_dialog
from dialogs.tools.retrying import run_with_retries
from dialogs.tools.tool import AsksPerson, Invocation, Stopped, Tool
from remediation.config import RetryPolicy
from remediation.guidance import CLEAR_MIND

log = structlog.get_logger(__name__)

STOPPED = Result("A person pressed stop while this ran. It did not end.", failed=True)
STOPPED_UNKNOWN = Result(
    "A person pressed stop while this ran; whether it took effect is not known. Check before you run it again.",
    failed=True,
    unknown=True,
)
LOOK_AGAIN_SECONDS = 60  # a dialog that waits for results is woken after this time, even if no result woke it

# The bracket that opens a statement about a person's decision. Only the runtime may write one.
PERSONS_DECISION = re.compile(r"\[(?=(?:The tool was not run\. A person|A person changed the arguments))")


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
                source = _run_one(lease, dialog, call, tools)
                span.set_attribute("dominds.tool.outcome", source.value if source else "done")
            if source is Awaited.PERSON:
                return
            if source is Awaited.ELSEWHERE:
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


def _run_one(lease: Lease, dialog: Dialog, call: Call, tools: Mapping[str, Tool]) -> Awaited | None:
    """Answer a call, have a person allow it, or run its tool. Returns None once its result is stored."""
    match plan_call(dialog, call, tools):
        case Answer(call, result):
            return _store(lease, call, result)
        case AskPermission(tool, invocation):
            return _ask(lease, call, tool, invocation)
        case RunInside(tool, invocation):
            return _run_inside(lease, call, tool, invocation)
        case RunOutside() as run:
            return _run_outside(lease, dialog, run)


@commits
def _ask(lease: Lease, call: Call, tool: Tool, invocation: Invocation) -> Awaited:
    """Have a person allow the call, which runs when the dialog is driven again."""
    with lease.change() as change:
        if change.dialog.is_leased:  # false when a commit is repeated that had succeeded
            change.dialog.running_call, change.dialog.crashes = "", 0
            ask_for_approval(change, tool.identity, call, invocation.arguments)
            release(change)
    return Awaited.PERSON


@commits
def _ask_for_tool(lease: Lease, call: Call, tool: Tool, asks: AsksPerson) -> Awaited:
    """Have a person answer a question of a running tool. The tool runs once more when they have answered."""
    with lease.change() as change:
        if change.dialog.is_leased:  # false when a commit is repeated that had succeeded
            change.dialog.running_call, change.dialog.crashes = "", 0
            ask_for_tool(change, tool.identity, call, asks.text, asks.choices)
            release(change)
    return Awaited.PERSON


def _run_inside(lease: Lease, call: Call, tool: Tool, invocation: Invocation) -> Awaited | None:
    """Run a tool in the transaction that stores its result. A failed run has been rolled back, and can be repeated."""
    try:
        if tool.ahead is not None:
            tool.ahead(invocation)
        run = partial(_store_made, lease, call, lambda change: _run_within(change, call, tool, invocation))
        return run_with_retries(run, tool, invocation, _policy_for, partial(_pause, lease))
    except (LeaseLost, OperationalError):
        raise
    except Exception as error:  # noqa: BLE001  a tool's bug is its result; _failure_result logs it
        return _store(lease, call, _failure_result(tool, invocation, error))


def _run_outside(lease: Lease, dialog: Dialog, run: RunOutside) -> Awaited | None:
    """Run a tool with no transaction open, and then store its result."""
    call, tool = run.call, run.tool
    if not tool.repeatable:
        with lease.change() as change:
            change.dialog.running_call = call.id
    connection.close()
    try:
        result = _result_outside(lease, tool, run.invocation)
    except AsksPerson as asks:
        return _ask_for_tool(lease, call, tool, asks)
    except Stopped:
        return _store(lease, call, STOPPED if tool.repeatable else STOPPED_UNKNOWN)
    text = PERSONS_DECISION.sub("(", result.text)  # a tool must not speak as a person
    result = replace(result, text=run.note + text)
    return _store(lease, call, oversized_results.fit(dialog, call.id, result))


def _result_outside(lease: Lease, tool: Tool, invocation: Invocation) -> Result:
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


def _store(lease: Lease, call: Call, result: Result) -> Awaited | None:
    return _store_made(lease, call, lambda change: result)


@commits
def _store_made(lease: Lease, call: Call, make: Callable[[Change], Result | Awaited]) -> Awaited | None:
    """Make a result, and store it in the same transaction, or note in it where the result will come from."""
    with lease.change() as change:
        # The commit may be repeated after it succeeded. Then the run has ended, or the result is there, as it is if it
        # came from elsewhere.
        if not change.dialog.is_leased:
            return Awaited.PERSON
        if _results(change.dialog, call).filter(tool_call_id=call.id).exists():
            return None
        result = make(change)
        change.dialog.running_call, change.dialog.crashes = "", 0
        change.dialog.changed_since_rewrite = True
        if isinstance(result, Awaited):
            if result is Awaited.PERSON:
                release(change)
            return result
        if result.failed:
            tracing.note_failed_tool()
        if call.name != CLEAR_MIND or result.failed:
            store_result(change, call.id, call.name, result, call.allowed_by)
        return None


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


def _run_within(change: Change, call: Call, tool: Tool, invocation: Invocation) -> Result | Awaited:
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
