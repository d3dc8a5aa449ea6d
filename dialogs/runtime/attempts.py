"""Generations as rows: begun before the provider is asked, ended in one transaction with all that they changed."""

from dataclasses import dataclass
from datetime import timedelta
from random import random

import structlog
from django.db.models.functions import Now
from django.utils import timezone

from dialogs.actions import rounds
from dialogs.context.limits import health_of, judgement_of
from dialogs.context.request import Prepared
from dialogs.models import Agent, Dialog, Generation, Turn
from dialogs.runtime import discarded_log, truncation
from dialogs.runtime.stream_reply import Reply
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease, release
from dominds.db.prepared import insert, update
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.circuit_breaker import OpenCircuit
from dominds.llm.messages import ToolCall
from dominds.llm.provider import ContextOverflow
from dominds.llm.retry import delay_before_retry
from dominds.llm.usage import Usage, UsageReport, UsageUnavailable
from health import recording
from health.levels import Level, Thresholds
from remediation.decisions import Discard, Suspend
from remediation.guidance import (
    CRITICAL_KIND,
    EXHAUSTED,
    Counters,
    after_discarded,
    after_kept,
    clears_exhausted,
    judge_forced,
    judge_last_clear,
    package_of,
)
from remediation.tokens.calibration import Calibration, calibrate

log = structlog.get_logger(__name__)

REST_SPREAD_SECONDS = 3.0  # so that not all dialogs of a model that was let rest come back at once

_ENDED_COLUMNS = (
    "outcome", "finished_at", "cursor", "finish_reason", "first_token_ms", "prompt_tokens", "completion_tokens",
    "total_tokens", "error_kind", "error", "skipped_calls",
)  # fmt: skip


class AlreadyEnded(Exception):
    """The commit is a repetition of one that did succeed, though its answer was lost."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A generation under way, with what its end must be judged by."""

    generation: Generation
    prepared: Prepared
    thresholds: Thresholds

    @property
    def forced(self) -> bool:
        return self.generation.purpose == Generation.Purpose.FORCED_CLEAR


@commits
def begin(
    lease: Lease, model: ModelInfo, prepared: Prepared, thresholds: Thresholds, *, forced: bool, est_prompt: int | None
) -> Attempt:
    with lease.change(durable=False) as change:
        dialog = change.dialog
        purpose = Generation.Purpose.FORCED_CLEAR if forced else Generation.Purpose.REPLY
        dialog.wake_at = None
        dialog.generations_for_message += 1
        if forced and dialog.failed_clears == 0 and not dialog.clear_unproven:
            dialog.clear_episode += 1
        generation = Generation(
            dialog=dialog,
            round_number=dialog.round_number,
            purpose=purpose,
            attempt=dialog.failed_clears + 1 if forced else dialog.tries + 1,
            epoch=lease.epoch,
            provider=model.provider_id,
            model=model.model_id,
            answers_seq=dialog.answering_seq,
            guided=prepared.guided,
            clear_episode=dialog.clear_episode if forced else None,
            frame=prepared.frame,
            base=prepared.base,
            request_chars=prepared.chars,
            est_prompt_tokens=est_prompt,
        )
        insert(generation)
        change.keeps_state = True
        change.event("generation", id=generation.pk, purpose=purpose, attempt=generation.attempt, outcome="running")
    return Attempt(generation, prepared, thresholds)


def end(lease: Lease, attempt: Attempt, reply: Reply) -> float:
    """Store how a generation ended: turn, usage, snapshot, counters, events and state, all or nothing.

    Returns the seconds to wait before the next try, 0 when there is nothing to wait for.
    """
    if reply.lost:
        lease.lost = True  # for good: this attempt's row is another worker's to end
        return 0.0
    try:
        return _end(lease, attempt, reply)
    except AlreadyEnded:
        return 0.0


@commits
def _end(lease: Lease, attempt: Attempt, reply: Reply) -> float:
    delay = 0.0
    with lease.change() as change:
        change.dialog.crashes = 0
        if reply.stopped:
            _stopped(change, attempt, reply)
        elif reply.error or reply.aborted:
            delay = _failed(change, attempt, reply)
        elif attempt.forced:
            _forced(change, attempt, reply)
        else:
            _kept(change, attempt, reply)
        if change.dialog.is_leased and change.dialog.answering_seq is None and not change.dialog.continuing:
            change.dialog.stop_requested = False  # it was for this message, which has ended by itself
            change.take_next_message()
        ended = not has_more_to_do(change.dialog)
        if ended:
            release(change)
    lease.released = lease.released or ended
    return delay


def has_more_to_do(dialog: Dialog) -> bool:
    return dialog.answering_seq is not None or dialog.continuing or bool(dialog.requested_rewrite)


def _close(change: Change, attempt: Attempt, reply: Reply, outcome: str) -> None:
    """The generation's own row and event; a success, kept or discarded, also has its snapshot and sets the level."""
    generation, usage = attempt.generation, reply.usage
    generation.outcome, generation.finished_at = outcome, timezone.now()
    generation.cursor, generation.finish_reason = reply.cursor, reply.finish_reason[:40]
    generation.first_token_ms = reply.first_token_ms
    if isinstance(usage, Usage):
        generation.prompt_tokens, generation.completion_tokens = usage.prompt_tokens, usage.completion_tokens
        generation.total_tokens = usage.total_tokens
    if reply.error:
        generation.error_kind, generation.error = reply.error.kind, str(reply.error)
    elif reply.aborted:
        generation.error_kind, generation.error = "context_full", reply.aborted
    fields = {name: getattr(generation, name) for name in _ENDED_COLUMNS}
    if not update(Generation, {"id": generation.pk, "outcome": Generation.Outcome.RUNNING}, fields):
        raise AlreadyEnded
    if outcome in (Generation.Outcome.FAILED, Generation.Outcome.STOPPED) or reply.interrupted:
        recording.record(generation.pk, UsageUnavailable(), attempt.thresholds)
    change.event(
        "generation", id=generation.pk, purpose=generation.purpose, attempt=generation.attempt, outcome=outcome
    )


def _report(change: Change, attempt: Attempt, usage: UsageReport) -> Level:
    """Record the health of a generation that counts for it (R3), and tell the page."""
    dialog = change.dialog
    suspected = isinstance(usage, Usage) and truncation.suspected(attempt.generation, usage)
    recording.record(attempt.generation.pk, usage, attempt.thresholds, truncation_suspected=suspected)
    dialog.overflowed, dialog.changed_since_rewrite, dialog.tries = False, True, 0
    if isinstance(usage, Usage):
        dialog.report = Dialog.Report.SUSPECTED if suspected else Dialog.Report.REPORTED
        dialog.prompt_tokens, dialog.completion_tokens = usage.prompt_tokens, usage.completion_tokens
        dialog.total_tokens = usage.total_tokens
        estimated = attempt.generation.est_prompt_tokens
        if estimated and not suspected and not attempt.prepared.guided:
            known = Calibration(dialog.calibration) if dialog.calibration else None
            dialog.calibration = calibrate(known, estimated, usage.prompt_tokens).factor
    else:
        dialog.report = Dialog.Report.UNAVAILABLE
        dialog.prompt_tokens = dialog.completion_tokens = dialog.total_tokens = None
    change.event("health", **health_of(dialog, attempt.thresholds))
    return judgement_of(dialog, attempt.thresholds).level


def _counters(dialog: Dialog) -> Counters:
    return Counters(dialog.kept_since_guidance, dialog.guided_generations, dialog.failed_clears, dialog.clear_unproven)


def set_counters(dialog: Dialog, counters: Counters) -> None:
    dialog.kept_since_guidance, dialog.guided_generations = counters.kept_since_guidance, counters.guided_generations
    dialog.failed_clears, dialog.clear_unproven = counters.failed_clears, counters.clear_unproven


def _kept(change: Change, attempt: Attempt, reply: Reply) -> None:
    dialog = change.dialog
    _close(change, attempt, reply, Generation.Outcome.KEPT)
    change.turn(
        Turn.Role.ASSISTANT,
        Turn.Status.INTERRUPTED if reply.interrupted else Turn.Status.COMPLETE,
        text=_storable(reply.text),
        tool_calls=_calls_json(attempt.generation, reply.tool_calls),
        provider_items=list(reply.provider_items) or None,
        generation=attempt.generation,
    )
    if reply.interrupted:
        log.info("stream_interrupted", dialog_id=str(dialog.pk), reason=reply.interrupted)
        dialog.changed_since_rewrite = True  # the stream filled the window: the policy may compact again (R10)
        return
    level = _report(change, attempt, reply.usage)
    set_counters(dialog, after_kept(_counters(dialog), level, guided=attempt.generation.guided))
    if reply.tool_calls:
        return
    answered = dialog.answering_seq
    change.end_message(Turn.Status.ANSWERED)
    if clears_exhausted(_counters(dialog)) and dialog.agent.critical_policy == Agent.CriticalPolicy.ESCALATE:
        # At once, while it is known which message was too long, and not with whatever is said next (R6).
        rounds.suspend_within(change, Suspend(CRITICAL_KIND, EXHAUSTED), about=answered)


def _forced(change: Change, attempt: Attempt, reply: Reply) -> None:
    """R6 judges the output. A refused one leaves nothing but its generation's numbers."""
    dialog = change.dialog
    match judge_forced(reply.tool_calls):
        case Discard(reason):
            _close(change, attempt, reply, Generation.Outcome.DISCARDED)
            discarded_log.log_output(attempt.generation, reason, reply)
            level = _report(change, attempt, reply.usage)
            set_counters(dialog, after_discarded(judge_last_clear(_counters(dialog), level)))
        case _:
            clear = next(call for call in reply.tool_calls if call.name == "clear_mind")
            attempt.generation.skipped_calls = len(reply.tool_calls) - 1
            _close(change, attempt, reply, Generation.Outcome.KEPT)
            _report(change, attempt, reply.usage)
            calls = _calls_json(attempt.generation, (clear,)) or []
            change.turn(Turn.Role.ASSISTANT, Turn.Status.COMPLETE, tool_calls=calls, generation=attempt.generation)
            change.turn(
                Turn.Role.TOOL, Turn.Status.OK, tool_call_id=calls[0]["id"], tool_name=clear.name, text="Mind cleared."
            )
            rounds.clear_within(change, package_of(clear), cause="clear_mind", unproven=True)


def _stopped(change: Change, attempt: Attempt, reply: Reply) -> None:
    _close(change, attempt, reply, Generation.Outcome.STOPPED)
    if reply.text and not attempt.forced:
        change.turn(Turn.Role.ASSISTANT, Turn.Status.STOPPED, text=_storable(reply.text), generation=attempt.generation)
    change.end_message(Turn.Status.STOPPED)
    change.dialog.stop_requested = False


def _failed(change: Change, attempt: Attempt, reply: Reply) -> float:
    """Try again later, act on an overflow, or end the message with the reason in sight."""
    dialog, error = change.dialog, reply.error
    _close(change, attempt, reply, Generation.Outcome.FAILED)
    if isinstance(error, ContextOverflow):
        _overflowed(change, attempt, error)
        return 0.0
    dialog.tries += 1
    if reply.aborted:
        log.warning("stream_aborted", dialog_id=str(dialog.pk), reason=reply.aborted)
        rounds.record_context_error(dialog, "TOKEN_LIMIT_EXCEEDED", reply.aborted)
    delay = delay_before_retry(error, dialog.tries, random()) if error else None
    if delay is not None:
        dialog.wake_at = Now() + timedelta(seconds=delay)  # by the database's clock: workers differ
        change.event("notice", text=f"{error} Trying again in {max(1, round(delay))} s.")
        return delay
    if reply.text and not attempt.forced:
        change.turn(Turn.Role.ASSISTANT, Turn.Status.FAILED, text=_storable(reply.text), generation=attempt.generation)
    dialog.failure = str(error) if error else reply.aborted
    change.end_message(Turn.Status.FAILED)
    return 0.0


@commits
def hold_back(lease: Lease, rest: OpenCircuit) -> float:
    """Note that the model was not asked, and return after how many seconds it will be."""
    delay = rest.seconds + random() * REST_SPREAD_SECONDS
    with lease.change() as change:
        change.dialog.tries += 1
        change.dialog.wake_at = Now() + timedelta(seconds=delay)
        change.event("notice", text=f"{rest} Trying again in {max(1, round(delay))} s.")
    return delay


def _overflowed(change: Change, attempt: Attempt, error: ContextOverflow) -> None:
    """R12: act as if critical. Inside a forced attempt nothing smaller can be sent, so a human is asked at once."""
    dialog = change.dialog
    rounds.record_context_error(dialog, "TOKEN_LIMIT_EXCEEDED", str(error))
    dialog.overflowed = True
    set_counters(dialog, judge_last_clear(_counters(dialog), Level.CRITICAL))  # a clear before it did not help
    if attempt.forced:
        rounds.suspend_within(change, Suspend(CRITICAL_KIND, f"The forced clear itself is too long: {error}"))


def _calls_json(generation: Generation, calls: tuple[ToolCall, ...]) -> list[dict[str, str]] | None:
    """Calls under ids of our own: providers repeat theirs, or send none (V11)."""
    return [
        {"id": f"call_{generation.pk}_{number}", "name": call.name, "arguments": _storable(call.arguments)}
        for number, call in enumerate(calls, 1)
    ] or None


def _storable(text: str) -> str:
    """Neither database stores NUL or half surrogate pairs; models do send them."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
