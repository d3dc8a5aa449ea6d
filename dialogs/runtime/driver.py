"""The driver, which performs what policies decide. It never judges; a new case belongs in the types of decisions."""

from uuid import UUID

import structlog
from django.core.exceptions import ObjectDoesNotExist

from dialogs.actions import messages, rounds, suspension
from dialogs.context import connected
from dialogs.context.images import with_image_bytes
from dialogs.context.model_calls import ModelCall
from dialogs.context.package_draft import draft_package
from dialogs.context.request import prepare
from dialogs.context.retrieval.meanings import MEANINGS
from dialogs.context.retrieval.recall import PushRecall
from dialogs.context.sent import record_request
from dialogs.context.served import Served
from dialogs.context.spending import NoRoomInBudget
from dialogs.context.tool_calls import abandon
from dialogs.models import Agent, Dialog, Question, Round, Turn
from dialogs.runtime import (
    attempts,
    next_call,
    outcomes,
    repeats,
    rewrite,
    rewrite_job,
    tool_runs,
    tracing,
)
from dialogs.runtime.live_text import LiveAnswer
from dialogs.runtime.materials import materials_of
from dialogs.runtime.policy_context import context_of
from dialogs.runtime.prepare import may_be_near, prepare_soon
from dialogs.runtime.stream_reply import stream_reply
from dialogs.runtime.titles import write_title
from dialogs.store.change import Change, LeaseLost
from dialogs.store.lease import MAX_CRASHES, Lease, claim, release
from dialogs.store.quarantine import PASSING, quarantine
from dominds.llm.catalog.catalog import UnknownModel
from dominds.llm.circuit_breaker import OpenCircuit, circuits
from dominds.llm.connect import connect
from dominds.llm.models import params
from dominds.llm.provider import ProviderError
from dominds.llm.retry import MAX_TRIES
from remediation.decisions import ClearMind, Fail, ForceClear, Proceed, Rewrite, Suspend
from remediation.policies import decide

log = structlog.get_logger(__name__)

MAX_GENERATIONS_PER_MESSAGE = 200
PATIENCE_SECONDS = 10  # before a longer wait for the next try, the worker releases the dialog
OTHERS_SECONDS = 1.0  # between two checks whether the calls under way have left room in a budget


def drive(dialog_id: UUID) -> None:
    """Run a dialog until nothing is left to do, a human must act, or it belongs to another worker.

    1. Run the tool calls that the last reply left.
    2. Ask the policies what the next generation needs.
    3. Rewrite, clear, suspend, fail or generate accordingly.
    4. Store the outcome in one transaction; repeat.

    Afterwards, while the dialog rests, it gets a title if it has none yet, embeddings of the turns that left the
    context, and a prepared rewrite if one may be needed soon.
    """
    awaits_title = is_near = False
    with claim(dialog_id) as lease:
        if lease is None:
            return
        with tracing.trace_run(lease):
            log.info("driving")
            connected.follow()
            try:
                while lease.holds and (dialog := pending_work(lease)):
                    awaits_title = dialog.awaits_title
                    if calls := tool_runs.pending_calls(dialog):
                        tool_runs.run(lease, dialog, calls)
                    else:
                        is_near = step(lease, dialog)
            except LeaseLost as loss:
                log.warning("lease_lost", reason=str(loss))
            except ObjectDoesNotExist:
                if Dialog.objects.filter(pk=dialog_id).exists():
                    raise
                log.warning("lease_lost", reason="The dialog was erased while a step read it.")
    if awaits_title:
        write_title(dialog_id)
    MEANINGS.rest(dialog_id)
    if is_near:
        prepare_soon(dialog_id, lease.epoch)


def pending_work(lease: Lease) -> Dialog | None:
    """Return the dialog as it is now; None if this worker has no more work in it."""
    dialog = lease.read_dialog()
    if dialog.epoch != lease.epoch or not dialog.is_leased:
        return None
    if dialog.stop_requested:
        stop(lease)
        return pending_work(lease)
    if dialog.crashes >= MAX_CRASHES:
        give_up(lease)
        return pending_work(lease)
    if not dialog.has_work:
        settle(lease)
        return None
    lease.work_for(dialog.answering_seq)
    return dialog


def step(lease: Lease, dialog: Dialog) -> bool:
    """Take the dialog's next step. Returns True after a model call if the context may need a rewrite soon."""
    try:
        materials = materials_of(dialog)
        served, view, _, sizes = materials
        recall = PushRecall(dialog, view)
        context = context_of(dialog, served, view, sizes)
        if context.is_obstructed:
            rewrite.tell_obstacle(lease, dialog, served.model.model_id, context.budget)
        match decide(served.policy, context):
            case Proceed(guidance):
                if may_call(lease, dialog, served):
                    call = next_call.answer(dialog, materials, guidance, context.nudge, recall)
                    generate(lease, dialog, served, call)
                return may_be_near(dialog, served.policy, context)
            case ForceClear(guidance):
                if may_call(lease, dialog, served):
                    generate(lease, dialog, served, next_call.forced_clear(dialog, materials, guidance))
                return may_be_near(dialog, served.policy, context)
            case Rewrite() as decision:
                rewrite.perform(lease, rewrite_job.job_for(dialog, materials, decision))
            case ClearMind() as decision:
                clear(lease, dialog, decision)
            case Suspend() as decision:
                suspend(lease, dialog, decision)
            case Fail(code, message):
                fail(lease, message, code)
    except (ProviderError, UnknownModel) as error:
        ask_for_a_model(lease, dialog, str(error))
    return False


def may_call(lease: Lease, dialog: Dialog, served: Served) -> bool:
    """Check whether the model may be called now. If not, the message fails or waits."""
    if dialog.generations_for_message >= MAX_GENERATIONS_PER_MESSAGE:
        fail(lease, f"The agent made {MAX_GENERATIONS_PER_MESSAGE} generations for this message without an answer.")
    elif served.lacks_limit and served.unusable:
        fail(lease, served.unusable)
    elif circuit := circuits.open_circuit(served.model):
        connect(served.model)  # raises now if the model lacks its key or cannot be used: waiting would not help
        postpone(lease, dialog, circuit)
    else:
        return True
    return False


def generate(lease: Lease, dialog: Dialog, served: Served, call: ModelCall) -> None:
    """Make one model call, from request to commit. If it failed and is to be tried again, wait before that."""
    model = params.tune(served.model, dialog.agent.model_params, call.asked)
    provider = connect(model)
    prepared = prepare(dialog, served.model, call, repeats.form_of(dialog, served.model, call))
    stream = provider.stream(with_image_bytes(prepared.request, dialog.pk))
    sent = record_request(dialog, call, prepared, model, stream.body)
    try:
        attempt = attempts.begin(lease, dialog, served, call, prepared, sent)
    except attempts.StopRequested:
        return  # the driver's next look at the dialog stops it
    except NoRoomInBudget as reason:
        # Calls under way may use up the budget, so this one waits. If it is used up, policies say so at the next step.
        log.info("waiting_for_budget", reason=str(reason))
        lease.pause(OTHERS_SECONDS)
        return
    live = LiveAnswer(lease.dialog_id, attempt.generation.pk) if call.streams else None
    with tracing.trace_generation(attempt.generation) as traced:
        reply = traced(stream_reply(lease, stream, live, call.watch, window=served.thresholds.context_limit))
        circuits.note(served.model, reply.error_for_circuit)
        delay = outcomes.store_outcome(lease, attempt, reply)
    wait(lease, delay)


def ask_for_a_model(lease: Lease, dialog: Dialog, reason: str) -> None:
    """Ask the person for another model, or fail a program's message.

    The model, its provider or its key is gone, so each further message would fail.
    """
    if repeats.asks_person(dialog):
        suspend(lease, dialog, Suspend(Question.Kind.REFUSED, reason))
    else:
        fail(lease, reason)


def postpone(lease: Lease, dialog: Dialog, circuit: OpenCircuit) -> None:
    """Wait before calling a model that fails for every dialog now, or fail the message.

    The wait counts as a try, so that no message waits forever. A proxy's message fails at once.
    """
    if not dialog.agent.kind.outlasts_circuits or dialog.tries + 1 >= MAX_TRIES:
        fail(lease, str(circuit))
    else:
        wait(lease, attempts.postpone(lease, circuit))


def wait(lease: Lease, delay: float) -> None:
    if delay > PATIENCE_SECONDS:
        # The dialog's row says when to wake it. A busy provider must not keep every worker waiting.
        lease.release_later()
    else:
        lease.pause(delay)


def suspend(lease: Lease, dialog: Dialog, decision: Suspend) -> None:
    package = draft_package(dialog) if decision.kind == Question.Kind.CRITICAL else ""
    with lease.change() as change:
        suspension.suspend_within(change, decision, package)


def clear(lease: Lease, dialog: Dialog, decision: ClearMind) -> None:
    """Clear the mind although the model did not ask for it: for a person, or for the runtime with a drafted package."""
    package = "" if decision.by_person else draft_package(dialog)
    with lease.change() as change:
        if decision.by_person:
            rounds.clear_within(change, change.dialog.requested_package, cause=Round.Cause.PERSON)
            change.dialog.requested_rewrite = change.dialog.requested_package = ""
        else:
            change.event("notice", text=f"The runtime cleared the agent's mind: {decision.reason}.")
            rounds.clear_within(change, package, cause=Round.Cause.COUNTDOWN, unproven=True)


def fail(lease: Lease, message: str, code: str = "") -> None:
    with lease.change() as change:
        if code:
            rounds.record_context_error(change.dialog, code, message)
        change.dialog.failure = message
        change.dialog.requested_rewrite = ""
        if change.dialog.agent.critical_policy == Agent.CriticalPolicy.COUNTDOWN:
            change.dialog.failed_clears = 0  # so that forced clears are tried again for the next message
        abandon(change, "Not run: the message failed.")
        change.end_message(Turn.Status.FAILED)
        proceed_or_release(change)


def give_up(lease: Lease) -> None:
    """End the message after too many crashes, or quarantine the dialog if its rows cannot even be read for that."""
    try:
        fail(lease, f"The worker was lost {MAX_CRASHES} times in a row while it worked on this message. Try again.")
    except PASSING:
        raise
    except Exception:  # noqa: BLE001  quarantine logs it
        quarantine(lease.dialog_id)


def stop(lease: Lease) -> None:
    with lease.change() as change:
        messages.stop_within(change)
        proceed_or_release(change)


def settle(lease: Lease) -> None:
    with lease.change() as change:
        proceed_or_release(change)


def proceed_or_release(change: Change) -> None:
    """Take the next waiting message, or end the run in the same commit."""
    change.take_next_message()
    if not change.dialog.has_work:
        release(change)
