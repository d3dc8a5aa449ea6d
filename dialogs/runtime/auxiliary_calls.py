"""Model calls beside the conversation: pruning, summaries, titles. They are generations, but say nothing about
health."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from dialogs.context.limits import model_of, thresholds_of_model
from dialogs.context.provider_cursor import cursor_of
from dialogs.context.room import SHORT_ANSWER
from dialogs.context.sent import Sent
from dialogs.context.spending import NoRoomInBudget, check_room
from dialogs.models import Agent, Dialog, Generation, SiteSettings
from dialogs.runtime import tracing
from dialogs.runtime.attempts import ENDED_COLUMNS, set_usage
from dialogs.runtime.repeats import less_output
from dialogs.runtime.stream_reply import Ending, Reply, stream_reply
from dialogs.store.change import Change, open_change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease, keeper
from dominds.db.prepared import Select, insert, update
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.circuit_breaker import circuits
from dominds.llm.connect import connect
from dominds.llm.messages import Message, Request, Role
from dominds.llm.models.params import tune
from dominds.llm.models.room import output_room
from dominds.llm.provider import OutputBudgetTooLarge, Overloaded, ProviderError, Stream
from dominds.llm.stream import CUT_SHORT, FinishReason
from remediation.budget import side_answer
from remediation.prompts import Prompt, render
from remediation.tokens.counting import counter_for

log = structlog.get_logger(__name__)

SECONDS = 120  # a call that takes longer has failed, and its caller goes on without it
WORDS_PER_TOKEN = 0.75


def pruning_model(dialog: Dialog) -> ModelInfo:
    """Return the model of the pruning agent in the settings, with that agent's settings, or else the dialog's own
    model.

    The settings of the dialog's agent are for its answers: a high effort would spend the short output of a summary on
    thinking.
    """
    settings = _settings.first()
    agent: Agent | None = settings.pruning_agent if settings else None
    try:
        return tune(model_of(agent), agent.model_params) if agent is not None else model_of(dialog)
    except UnknownModel:
        return model_of(dialog)


@Select
def _settings() -> QuerySet[SiteSettings]:
    return SiteSettings.objects.select_related("pruning_agent").order_by("pk")


def pruning_window(dialog: Dialog) -> int | None:
    return thresholds_of_model(pruning_model(dialog)).context_limit


def _longest_answer(model: ModelInfo, text: str) -> int | None:
    """Return the tokens of output to ask for.

    A server that goes on past the end of its window, as LM Studio does, is asked for at most half of the window.
    """
    window = thresholds_of_model(model).context_limit
    wanted = side_answer(window, SHORT_ANSWER, model.kind.overruns)
    return output_room(model, counter_for(model.model_id, model.tokenizer).count(text), window=window, wanted=wanted)


def ask(lease: Lease, dialog: Dialog, purpose: str, instructions: str, content: str) -> str:
    """Ask the pruning model once, record the call, and return its text. Raises ``ProviderError``.

    If the model's circuit is open, or a budget has no room, ``Overloaded`` is raised without a call or a record.
    """
    model = _model_to_ask(dialog)
    try:
        generation = _begin(lease, dialog, model, purpose, len(instructions) + len(content))
    except NoRoomInBudget as reason:
        raise Overloaded(str(reason)) from None
    with tracing.trace_generation(generation) as traced:
        reply = traced(_reply(lease, generation, model, instructions, content))
        _end(lease, generation, reply, model)
    return _text_of(reply)


def ask_at_rest(watch: Lease, dialog: Dialog, purpose: str, instructions: str, content: str) -> str:
    """Ask as ``ask`` does for a dialog that nobody drives. The call is cut off when a worker claims the dialog."""
    model = _model_to_ask(dialog)
    try:
        generation, reply = watched_call(watch, dialog, model, purpose, instructions, content)
    except NoRoomInBudget as reason:
        raise Overloaded(str(reason)) from None
    with open_change(dialog.pk, durable=False) as change:
        change.keeps_state = True
        record(change, generation, reply, model)
    return _text_of(reply)


def _model_to_ask(dialog: Dialog) -> ModelInfo:
    """Return the pruning model. Raises ``Overloaded`` if its circuit is open."""
    model = pruning_model(dialog)
    if circuit := circuits.open_circuit(model):
        raise Overloaded(str(circuit), retry_after_seconds=circuit.seconds)
    return model


def _text_of(reply: Reply) -> str:
    if reply.error:
        raise reply.error
    if reply.finish_reason == FinishReason.REFUSAL:
        raise ProviderError("The model, or a filter of its provider, refused to answer.")
    if not reply.is_complete or reply.finish_reason in CUT_SHORT:
        raise ProviderError("The answer was cut off.")
    return reply.text


@contextmanager
def watch_at_rest(dialog: Dialog) -> Iterator[Lease]:
    """Watch a dialog at rest through a lease that claims nothing, and is lost when a worker claims the dialog."""
    watch = Lease(dialog.pk, dialog.epoch, lost=keeper.draining)
    keeper.add(watch)
    try:
        yield watch
    finally:
        keeper.remove(watch)


def watched_call(
    watch: Lease, dialog: Dialog, model: ModelInfo, purpose: str, instructions: str, content: str
) -> tuple[Generation, Reply]:
    """Make a call for a dialog at rest. Raises ``NoRoomInBudget``.

    Its row says "crashed" until the call ends. So the row is never the dialog's running generation, and is right if
    this worker vanishes.
    """
    columns = _columns(dialog, model, purpose, len(instructions) + len(content))
    with transaction.atomic():
        check_room(dialog, dialog.known_cost)
        generation = Generation(**columns, outcome=Generation.Outcome.CRASHED)
        insert(generation)
    with tracing.trace_generation(generation) as traced:
        return generation, traced(_reply(watch, generation, model, instructions, content))


def _reply(lease: Lease, generation: Generation, model: ModelInfo, instructions: str, content: str) -> Reply:
    dialog, purpose = generation.dialog, generation.purpose
    request = Request(
        model=model.model_id,
        instructions=instructions,
        messages=(Message(Role.USER, content),),
        max_output_tokens=_longest_answer(model, instructions + content),
        conversation=f"{dialog.pk}:{purpose}",
        cursor=cursor_of(dialog, model, purpose),
    )
    try:
        provider = connect(model)
        reply = _ask(lease, provider.stream(request), generation)
        if isinstance(reply.error, OutputBudgetTooLarge) and (less := less_output(request, reply.error)):
            request = replace(request, max_output_tokens=less)
            reply = _ask(lease, provider.stream(request), generation)
    except ProviderError as error:
        reply = Reply()
        reply.fail(error)
    circuits.note(model, reply.error_for_circuit)
    return reply


def _ask(lease: Lease, stream: Stream, generation: Generation) -> Reply:
    generation.sent = Sent(hashlib.sha256(stream.body).hexdigest()).stored
    return stream_reply(lease, stream, live=None, seconds=SECONDS)


def summarise(ask: Callable[[str, str], str], dialog: Dialog, text: str, max_tokens: int, prompt: Prompt) -> str:
    """Have the model write a hand-off summary. Empty after a failure: the caller then selects sentences."""
    instructions = render(prompt, words=int(max_tokens * WORDS_PER_TOKEN))
    try:
        return ask(instructions, text)
    except ProviderError as error:
        log.warning("summary_failed", dialog_id=str(dialog.pk), error=str(error))
        return ""


@commits
def _begin(lease: Lease, dialog: Dialog, model: ModelInfo, purpose: str, chars: int) -> Generation:
    with lease.change(durable=False) as change:
        check_room(dialog, change.dialog.known_cost)
        generation = Generation(**_columns(dialog, model, purpose, chars))
        insert(generation)
        change.generation_event(generation)
    return generation


def _columns(dialog: Dialog, model: ModelInfo, purpose: str, chars: int) -> dict[str, Any]:
    return {
        "dialog": dialog,
        "key_id": dialog.key_id,
        "round_number": dialog.round_number,
        "purpose": purpose,
        "epoch": dialog.epoch,
        "provider": model.provider_id,
        "model": model.model_id,
        "answers_seq": dialog.answering_seq,
        "request_chars": chars,
    }


@commits
def _end(lease: Lease, generation: Generation, reply: Reply, model: ModelInfo) -> None:
    if reply.ending is Ending.LOST:
        return
    with lease.change(durable=False) as change:
        record(change, generation, reply, model)


def record(change: Change, generation: Generation, reply: Reply, model: ModelInfo) -> None:
    """End the row of a call."""
    outcome = "kept" if reply.is_complete else "stopped" if reply.was_left else "failed"
    generation.outcome = outcome
    generation.finished_at = timezone.now()
    generation.cursor = reply.cursor
    generation.finish_reason = reply.finish_reason[:40]
    set_usage(change, generation, reply.usage, model.prices)
    if reply.error:
        generation.error_kind, generation.error = reply.error.kind, reply.reason
    columns = {name: getattr(generation, name) for name in (*ENDED_COLUMNS, "sent")}
    update(Generation, {"id": generation.pk}, columns)
    change.generation_event(generation)
