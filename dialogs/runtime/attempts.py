"""Rows of generations: begun before the provider is asked, and ended in the transaction that stores their outcome."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from random import random
from typing import Any

import orjson
from django.db.models.functions import Now
from django.utils import timezone

from dialogs.context.model_calls import ForcedClear, ModelCall
from dialogs.context.reminder_statements import as_rows
from dialogs.context.request import Prepared
from dialogs.context.sent import Part, Sent
from dialogs.context.served import Served
from dialogs.context.spending import check_room
from dialogs.context.view_sizes import ViewSizes
from dialogs.models import ContextState, Dialog, Generation, RequestPart
from dialogs.runtime.stream_reply import Ending, Reply
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from dominds import budgets
from dominds.db.prepared import insert, update
from dominds.llm.circuit_breaker import OpenCircuit
from dominds.llm.json_text import dump
from dominds.llm.models.prices import Price, cost_of
from dominds.llm.usage import Usage, UsageReport, UsageUnavailable
from health import recording
from health.levels import Thresholds
from remediation.strategies.left_out import ALL_SHOWN
from remediation.tokens.calibration import Counted

LOGPROBS = "logprobs"  # a field of answers
SMALLEST = Decimal("1e-10")  # USD: the precision of the column
CIRCUIT_SPREAD_SECONDS = 3.0  # random part of each wait, so that not all dialogs return when a circuit closes

ENDED_COLUMNS = (
    "outcome",
    "finished_at",
    "cursor",
    "finish_reason",
    "first_token_ms",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
    "error_kind",
    "error",
    "skipped_calls",
)


class AlreadyEnded(Exception):
    """Raised when a repeated commit finds that its first try had succeeded, although the answer to that was lost."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A generation under way, with the facts by which its end is judged."""

    generation: Generation
    prepared: Prepared
    thresholds: Thresholds
    prices: tuple[Price, ...] = ()
    image_tokens: int = 0
    count: Callable[[], int] = int  # estimates the request's tokens, as pages showed them before it was sent
    is_shortened: bool = False  # the request left out a part of the view, so its size is not that of the context

    @property
    def forced(self) -> bool:
        return self.generation.purpose == Generation.Purpose.FORCED_CLEAR

    @property
    def counted(self) -> Counted | None:
        """Return the tokens of the prompt as counted before it was sent, if they were."""
        if not self.generation.est_prompt_tokens:
            return None
        tools, images = self.generation.est_tools_tokens or 0, self.image_tokens
        return Counted(self.generation.est_prompt_tokens - tools - images, tools, images)


class StopRequested(Exception):
    """Raised when a call must not begin because a person pressed stop."""


@commits
def begin(
    lease: Lease,
    whole: Dialog,
    served: Served,
    call: ModelCall,
    prepared: Prepared,
    sent: tuple[Sent, Mapping[str, Part]] | None = None,
) -> Attempt:
    """Store the row of a generation before the provider is asked. Raises ``NoRoomInBudget`` if the call must not begin
    now, ``StopRequested`` if a person pressed stop while this worker prepared it.

    ``whole`` is the dialog with the rows that ``Dialog.objects.whole`` joins. ``sent`` is the record of the request,
    with the parts that it shares with other requests.
    """
    model, counted, is_forced = served.model, call.counted, isinstance(call, ForcedClear)
    with lease.change(durable=False) as change:
        dialog = change.dialog
        if dialog.stop_requested:
            raise StopRequested
        check_room(whole, dialog.known_cost)
        dialog.wake_at = None
        dialog.generations_for_message += 1
        _begin_epoch(dialog, prepared)
        if sent is not None:
            _store_parts(dialog, sent[1])
        if is_forced and dialog.failed_clears == 0 and not dialog.clear_unproven:
            dialog.clear_episode += 1
        generation = Generation(
            dialog=dialog,
            key_id=dialog.key_id,
            round_number=dialog.round_number,
            purpose=call.purpose,
            attempt=dialog.failed_clears + 1 if is_forced else dialog.tries + 1,
            epoch=lease.epoch,
            provider=model.provider_id,
            model=model.model_id,
            answers_seq=dialog.answering_seq,
            guided=prepared.guided,
            sent=sent[0].stored if sent is not None else None,
            recalled=list(call.recalled.turns),
            clear_episode=dialog.clear_episode if is_forced else None,
            frame=prepared.frame,
            base=prepared.base,
            request_chars=prepared.chars,
            est_prompt_tokens=counted.total if counted else None,
            est_tools_tokens=counted.tools if counted else None,
            est_tokens=call.est_tokens,
        )
        insert(generation)
        change.keeps_state = True
        change.generation_event(generation)
    return Attempt(
        generation,
        prepared,
        served.thresholds,
        model.prices,
        image_tokens=counted.images if counted else 0,
        count=partial(_count, whole, served, call),
        is_shortened=call.view.left_out != ALL_SHOWN,
    )


def _count(dialog: Dialog, served: Served, call: ModelCall) -> int:
    return ViewSizes(dialog, served, call.view, call.tools).own.prompt + call.recalled.est_tokens


def _begin_epoch(context_state: ContextState, prepared: Prepared) -> None:
    context_state.context_epoch, context_state.beginning = prepared.request.epoch, prepared.beginning
    if (statements := as_rows(prepared.statements)) != context_state.statements:
        context_state.statements = statements


def _store_parts(context_state: ContextState, parts: Mapping[str, Part]) -> None:
    """Store the parts that the dialog's last request did not have. They are few, since requests share most parts."""
    named = sorted(parts)  # one order for all dialogs prevents deadlocks
    if context_state.request_parts == named:
        return
    known = set(context_state.request_parts or ())
    if new := [digest for digest in named if digest not in known]:
        rows = [RequestPart(digest=digest, **parts[digest]._asdict()) for digest in new]
        RequestPart.objects.bulk_create(rows, ignore_conflicts=True)
    context_state.request_parts = named


def _storable_fields(reply: Reply) -> dict[str, Any] | None:
    if reply.error:
        return {"status": reply.error.status} if reply.error.status else None
    probable = {name: value for name, value in reply.fields.items() if name == LOGPROBS}  # their reader bounds these
    others = {name: value for name, value in reply.fields.items() if name != LOGPROBS}
    is_storable = len(dump(others)) <= budgets.FIELDS_BYTES.most
    text = dump({**probable, **(others if is_storable else {})})
    return orjson.loads(text) or None if b"\\u0000" not in text else None


def finish(change: Change, attempt: Attempt, reply: Reply, outcome: str) -> None:
    """End the generation's row, with an unknown snapshot if it broke off. Raises ``AlreadyEnded`` if it had ended."""
    generation, usage = attempt.generation, reply.usage
    generation.outcome = outcome
    generation.finished_at = timezone.now()
    generation.cursor = reply.cursor
    generation.finish_reason = reply.finish_reason[:40]
    generation.first_token_ms = reply.first_token_ms
    generation.provider_fields = _storable_fields(reply)
    set_usage(change, generation, usage, attempt.prices)
    if reply.error:
        generation.error_kind, generation.error = reply.error.kind, reply.reason
    elif reply.ending is Ending.ABORTED:
        generation.error_kind, generation.error = "context_full", reply.reason
    unusual = {"est_tokens": not isinstance(usage, Usage), "provider_fields": bool(generation.provider_fields)}
    names = (*ENDED_COLUMNS, *(name for name, is_set in unusual.items() if is_set))
    columns = {name: getattr(generation, name) for name in names}
    if not update(Generation, {"id": generation.pk, "outcome": Generation.Outcome.RUNNING}, columns):
        raise AlreadyEnded
    if outcome in (Generation.Outcome.FAILED, Generation.Outcome.STOPPED) or reply.ending is Ending.INTERRUPTED:
        recording.record(generation.pk, UsageUnavailable(), attempt.thresholds)
    change.generation_event(generation)


def set_usage(change: Change, generation: Generation, usage: UsageReport, prices: Sequence[Price]) -> None:
    """Set the reported tokens, their cost by the prices when the call began, and the dialog's total cost.

    The caller has set the outcome, and stores the generation. A failed call without a report costs nothing.
    """
    if not isinstance(usage, Usage):
        change.dialog.unpriced_generations += generation.outcome != Generation.Outcome.FAILED
        return
    generation.prompt_tokens, generation.completion_tokens = usage.prompt_tokens, usage.completion_tokens
    generation.total_tokens, generation.reasoning_tokens = usage.total_tokens, usage.reasoning_tokens
    generation.cache_read_tokens, generation.cache_write_tokens = usage.cache_read_tokens, usage.written_tokens
    cost = cost_of(usage, prices, generation.started_at)
    if cost is None:
        change.dialog.unpriced_generations += 1
    else:
        generation.cost_usd = cost.quantize(SMALLEST)
        change.dialog.cost_usd = change.dialog.known_cost + generation.cost_usd


@commits
def postpone(lease: Lease, circuit: OpenCircuit) -> float:
    """Count a try that was not made because the model's circuit is open, and return the seconds until the next one."""
    delay = circuit.seconds + random() * CIRCUIT_SPREAD_SECONDS
    with lease.change() as change:
        change.dialog.tries += 1
        wake_after(change, delay, str(circuit))
    return delay


def wake_after(change: Change, seconds: float, reason: str) -> None:
    """Have the dialog driven again after ``seconds``, and tell people. The database's clock is used, since those of
    workers differ.
    """
    change.dialog.wake_at = Now() + timedelta(seconds=seconds)
    change.event("notice", text=f"{reason} Trying again in {max(1, round(seconds))} s.")
