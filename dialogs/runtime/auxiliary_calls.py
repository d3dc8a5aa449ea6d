"""Model calls beside the conversation: pruning, summaries, titles. They are generations, but say nothing about
health."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from dialogs.context.config import prompts_folder
from dialogs.context.limits import model_of, thresholds_of_model
from dialogs.context.provider_cursor import cursor_of
from dialogs.context.room import SHORT_ANSWER
from dialogs.context.sent import Sent
from dialogs.context.spending import NoRoomInBudget, check_room, spending_of
from dialogs.errors import NotFound
from dialogs.models import Agent, Dialog, Generation, SiteSettings, Turn
from dialogs.runtime import tracing
from dialogs.runtime.attempts import ENDED_COLUMNS, set_usage
from dialogs.runtime.repeats import less_output
from dialogs.runtime.stream_reply import Reply, stream_reply
from dialogs.store.change import Change, open_change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease, keeper
from dialogs.store.text import storable
from dominds.db.prepared import Select, insert, update
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel
from dominds.llm.circuit_breaker import circuits
from dominds.llm.connect import connect
from dominds.llm.messages import Message, Request, Role
from dominds.llm.models.params import tune
from dominds.llm.models.room import output_room
from dominds.llm.provider import OutputBudgetTooLarge, Overloaded, ProviderError, Stream, StreamAborted
from dominds.llm.stream import CUT_SHORT, FinishReason
from remediation.budget import side_answer
from remediation.prompts import Prompt, load, render
from remediation.tokens.counting import counter_for

log = structlog.get_logger(__name__)

SECONDS = 120  # a call that takes longer has failed, and its caller goes on without it
WORDS_PER_TOKEN = 0.75
# Lines that are no title: rows of tables, fences, rules, an announcement of what follows, and lines of the prompt.
NO_TITLE = re.compile(r"\|.*\||^\s*(```|~~~|-{3,}|={3,})|:\s*$|\bBEGIN\W*$|^\W*END\W*$|^\s*(user|assistant): ")
MOST_TITLE = 80  # characters: more is an answer
AROUND_TITLES = " #*_`\"'“”„«»‹›"
TITLED_CHARS = 2_000  # the part of a message, and of its answer, that a title is made from


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
    model = pruning_model(dialog)
    if rest := circuits.open_circuit(model):
        raise Overloaded(str(rest), retry_after_seconds=rest.seconds)
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
    model = pruning_model(dialog)
    if rest := circuits.open_circuit(model):
        raise Overloaded(str(rest), retry_after_seconds=rest.seconds)
    try:
        generation, reply = _watched_call(watch, dialog, model, purpose, instructions, content)
    except NoRoomInBudget as reason:
        raise Overloaded(str(reason)) from None
    with open_change(dialog.pk, durable=False) as change:
        change.keeps_state = True
        _record(change, generation, reply, model)
    return _text_of(reply)


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


def _watched_call(
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
        reply = Reply(error=error)
    circuits.note(model, StreamAborted("We left.") if reply.stopped or reply.lost else reply.error)
    return reply


def write_title(dialog_id: UUID) -> None:
    """Name a dialog after its first exchange.

    The dialog rests meanwhile, and the call gives way when a worker claims it. A person's title stays, and after a
    failure the beginning of the first message is the title.
    """
    dialog = Dialog.objects.whole().filter(pk=dialog_id, awaits_title=True, lease_owner="").first()
    content = _first_exchange(dialog) if dialog and not spending_of(dialog).exceeded else ""
    if dialog is None or not content or circuits.open_circuit(model := pruning_model(dialog)):
        return
    instructions = render(load("title", prompts_folder()))
    with watch_at_rest(dialog) as watch:
        try:
            generation, reply = _watched_call(watch, dialog, model, Generation.Purpose.TITLE, instructions, content)
        except NoRoomInBudget:
            return
    with suppress(NotFound), open_change(dialog.pk, durable=False) as change:  # it may have been erased meanwhile
        change.keeps_state = True
        _record(change, generation, reply, model)
        if not change.dialog.awaits_title or reply.stopped or reply.lost:
            return
        change.dialog.awaits_title = False
        if reply.is_complete and (title := title_in(reply.text)):
            change.dialog.title = title
            change.event("title", title=title)


def _first_exchange(dialog: Dialog) -> str:
    """Return the beginnings of the first message and of its answer, or an empty text if there is no answer."""
    turns = dialog.turns.filter(position__isnull=False, role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]).exclude(text="")
    first = list(turns.order_by("position").values_list("role", "text")[:2])
    if Turn.Role.ASSISTANT not in dict(first):
        return ""
    return "\n".join(["BEGIN", *(f"{role}: {text[:TITLED_CHARS]}" for role, text in first), "END"])


def title_in(answer: str) -> str:
    """Return the first line that can be a title, without the marks that models put around one.

    Returns an empty text for anything else: a row of a table, an announcement, or a whole paragraph.
    """
    for line in answer.splitlines():
        if NO_TITLE.search(line):
            continue
        bare = " ".join(storable(line).split()).strip(AROUND_TITLES).removeprefix("Title:")
        if title := bare.strip(AROUND_TITLES).rstrip("."):
            return title if len(title) <= MOST_TITLE else ""
    return ""


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
    if reply.lost:
        return
    with lease.change(durable=False) as change:
        _record(change, generation, reply, model)


def _record(change: Change, generation: Generation, reply: Reply, model: ModelInfo) -> None:
    outcome = "kept" if reply.is_complete else "stopped" if reply.stopped or reply.lost else "failed"
    generation.outcome = outcome
    generation.finished_at = timezone.now()
    generation.cursor = reply.cursor
    generation.finish_reason = reply.finish_reason[:40]
    set_usage(change, generation, reply.usage, model.prices)
    if reply.error:
        generation.error_kind, generation.error = reply.error.kind, str(reply.error)
    columns = {name: getattr(generation, name) for name in (*ENDED_COLUMNS, "sent")}
    update(Generation, {"id": generation.pk}, columns)
    change.generation_event(generation)
