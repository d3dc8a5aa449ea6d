"""Outcomes of generations: the changes that a kept, discarded, stopped or failed reply makes in its dialog."""

import re
from datetime import timedelta
from random import random
from typing import Any

import structlog
from django.db.models.functions import Now

from dialogs.actions import rounds, suspension
from dialogs.context.counters import counters_of, set_counters
from dialogs.context.package_draft import draft_package
from dialogs.context.sizes import calibration_of
from dialogs.context.tool_calls import store_mind_cleared
from dialogs.extension import installed_extensions
from dialogs.models import Agent, Dialog, Generation, Question, Round, Turn
from dialogs.runtime import repeats, truncation
from dialogs.runtime.attempts import AlreadyEnded, Attempt, finish, wake_after
from dialogs.runtime.refused_clear import explanation
from dialogs.runtime.stream_reply import Ending, Reply
from dialogs.store import discarded_log, json_shapes
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease, release
from dialogs.store.text import as_sentence, storable
from dominds.llm.messages import ToolCall
from dominds.llm.provider import ContextOverflow, RequestRefused
from dominds.llm.retry import delay_before_retry
from dominds.llm.usage import Usage, UsageReport
from health import recording
from health.levels import Level, Thresholds, judge
from remediation.decisions import Discard, Suspend
from remediation.guidance import (
    CLEAR_MIND,
    CRITICAL_KIND,
    EXHAUSTED,
    MAX_FORCED_CLEARS,
    after_discarded,
    after_kept,
    clears_exhausted,
    judge_forced,
    judge_last_clear,
    package_of,
)
from remediation.tokens.calibration import MOST_SLOPE, Calibration, calibrate

LONGEST_ADVICE_SECONDS = 86_400.0  # the longest Retry-After of a provider that programs are told
MAX_RESTARTS = 3  # rewrites for one message of an agent that is not guided
MOST_NAME_CHARS = 120  # of a called tool, as ``Turn.tool_name`` has it
log = structlog.get_logger(__name__)


def store_outcome(lease: Lease, attempt: Attempt, reply: Reply) -> float:
    """Store turn, usage, snapshot, counters, events and state in one transaction, and return the seconds to wait before
    the next try, 0 for none.
    """
    if reply.ending is Ending.LOST:
        lease.lost = True  # another worker ends the attempt's row
        return 0.0
    if attempt.generation.est_tokens is None and not isinstance(reply.usage, Usage):
        attempt.generation.est_tokens = attempt.count()  # no report tells the tokens
    try:
        return _store(lease, attempt, reply, _package_for(attempt, reply))
    except AlreadyEnded:
        return 0.0


def _package_for(attempt: Attempt, reply: Reply) -> str:
    """Draft the re-entry package for the question that this outcome will open; empty if it opens none. Done before the
    transaction, because it takes long.
    """
    dialog = attempt.generation.dialog
    if attempt.forced and isinstance(reply.error, RequestRefused | ContextOverflow):
        return draft_package(dialog)
    is_last = dialog.clear_unproven and dialog.failed_clears >= MAX_FORCED_CLEARS - 1
    return draft_package(dialog, reply.text) if is_last and not attempt.forced and not reply.error else ""


@commits
def _store(lease: Lease, attempt: Attempt, reply: Reply, package: str) -> float:
    delay = 0.0
    with lease.change() as change:
        change.dialog.crashes = 0
        match reply.ending:
            case Ending.STOPPED:
                _stop(change, attempt, reply)
            case Ending.FAILED | Ending.ABORTED:
                delay = _fail(change, attempt, reply, package)
            case _ if attempt.forced:
                _keep_forced_clear(change, attempt, reply)
            case _:
                _keep(change, attempt, reply, package)
        if change.dialog.is_leased and change.dialog.answering_seq is None and not change.dialog.continuing:
            change.dialog.stop_requested = False  # the stop was meant for this message, which has ended by itself
            change.take_next_message()
        ended = not change.dialog.has_work
        if ended:
            release(change)
    lease.released = lease.released or ended
    return delay


def _report(change: Change, attempt: Attempt, usage: UsageReport) -> Level:
    """Record the health of a generation in its snapshot and its dialog, tell pages, and return the level.

    The report of a shortened request says nothing about the size of the context, so the level before it stays.
    """
    dialog, thresholds = change.dialog, attempt.thresholds
    suspected = isinstance(usage, Usage) and truncation.is_suspected(
        dialog, attempt.generation, attempt.prepared.text_chars, usage
    )
    judgement = recording.record(attempt.generation.pk, usage, thresholds, truncation_suspected=suspected)
    before = _level_of_last_report(dialog, thresholds)
    dialog.overflowed = False
    dialog.changed_since_rewrite = True
    dialog.tries = 0
    dialog.repeats = {}
    if attempt.is_shortened and isinstance(usage, Usage):
        return before
    _keep_report(dialog, attempt, usage, suspected)
    change.event("health", **json_shapes.health(dialog, judgement, thresholds))
    if judgement.level in (Level.CAUTION, Level.CRITICAL) and judgement.level is not before:
        for extension in installed_extensions():
            extension.level_changed(dialog, judgement.level.value)
    return judgement.level


def _level_of_last_report(dialog: Dialog, thresholds: Thresholds) -> Level:
    return Level.UNKNOWN if dialog.prompt_tokens is None else judge(Usage(dialog.prompt_tokens, 0), thresholds).level


def _keep_report(dialog: Dialog, attempt: Attempt, usage: UsageReport, suspected: bool) -> None:
    """Keep the reported tokens in the dialog, and correct the estimates by them unless the provider is ``suspected`` of
    leaving out a part of the request.
    """
    if not isinstance(usage, Usage):
        dialog.report = Dialog.Report.UNAVAILABLE
        dialog.prompt_tokens = dialog.completion_tokens = dialog.total_tokens = None
        return
    dialog.report = Dialog.Report.SUSPECTED if suspected else Dialog.Report.REPORTED
    dialog.prompt_tokens, dialog.completion_tokens = usage.prompt_tokens, usage.completion_tokens
    dialog.total_tokens = usage.total_tokens
    if (counted := attempt.counted) and not suspected and not attempt.prepared.guided:
        dialog.calibration_fit = calibrate(calibration_of(dialog), counted, usage.prompt_tokens).numbers


def _keep(change: Change, attempt: Attempt, reply: Reply, package: str) -> None:
    dialog, is_interrupted = change.dialog, reply.ending is Ending.INTERRUPTED
    finish(change, attempt, reply, Generation.Outcome.KEPT)
    change.turn(
        Turn.Role.ASSISTANT,
        Turn.Status.INTERRUPTED if is_interrupted else Turn.Status.COMPLETE,
        text=reply.text,
        tool_calls=_calls_json(attempt.generation, reply.tool_calls),
        # The provider would refuse reasoning that is bound to the end of this request, which the next one lacks.
        provider_items=None if attempt.prepared.bound_to_once else list(reply.provider_items) or None,
        reasoning=_reasoning_json(reply),
        generation=attempt.generation,
    )
    if is_interrupted:
        log.info("stream_interrupted", dialog_id=str(dialog.pk), reason=reply.reason)
        dialog.changed_since_rewrite = True  # the answer filled the window: the policy may compact again
        return
    if reply.notice:
        change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=reply.notice)
    repeats.note_ignored(attempt, reply)
    level = _report(change, attempt, reply.usage)
    set_counters(dialog, after_kept(counters_of(dialog), level, guided=attempt.generation.guided))
    if reply.tool_calls:
        return
    answered = dialog.answering_seq
    change.end_message(Turn.Status.ANSWERED)
    if clears_exhausted(counters_of(dialog)) and dialog.agent.critical_policy == Agent.CriticalPolicy.ESCALATE:
        # Suspend now, while it is known which message was too long, and not with the next message.
        suspension.suspend_within(change, Suspend(CRITICAL_KIND, EXHAUSTED), package, about=answered)


def _keep_forced_clear(change: Change, attempt: Attempt, reply: Reply) -> None:
    """Keep a reply with exactly one valid ``clear_mind``. Of any other reply only the generation's numbers stay."""
    dialog = change.dialog
    match judge_forced(reply.tool_calls):
        case Discard(reason):
            offered = {tool.name for tool in attempt.prepared.request.tools}
            attempt.generation.error = explanation(reason, reply.tool_calls, offered)
            finish(change, attempt, reply, Generation.Outcome.DISCARDED)
            discarded_log.log_output(attempt.generation, reason, reply.text, reply.tool_calls)
            level = _report(change, attempt, reply.usage)
            set_counters(dialog, after_discarded(judge_last_clear(counters_of(dialog), level)))
        case _:
            clear = next(call for call in reply.tool_calls if call.name == CLEAR_MIND)
            attempt.generation.skipped_calls = len(reply.tool_calls) - 1
            finish(change, attempt, reply, Generation.Outcome.KEPT)
            _report(change, attempt, reply.usage)
            calls = _calls_json(attempt.generation, (clear,)) or []
            change.turn(Turn.Role.ASSISTANT, Turn.Status.COMPLETE, tool_calls=calls, generation=attempt.generation)
            store_mind_cleared(change, calls[0]["id"])
            rounds.clear_within(change, package_of(clear), cause=Round.Cause.CLEAR_MIND, unproven=True)


def _stop(change: Change, attempt: Attempt, reply: Reply) -> None:
    finish(change, attempt, reply, Generation.Outcome.STOPPED)
    _keep_text(change, attempt, reply, Turn.Status.STOPPED)
    change.end_message(Turn.Status.STOPPED)
    change.dialog.stop_requested = False
    change.dialog.repeats = {}


def _fail(change: Change, attempt: Attempt, reply: Reply, package: str) -> float:
    """Try again later, act on an overflow, ask a person, or end the message with a reason that people see."""
    dialog, error = change.dialog, reply.error
    finish(change, attempt, reply, Generation.Outcome.FAILED)
    if repeats.repeat_within(dialog, attempt, error):
        return 0.0
    if isinstance(error, ContextOverflow):
        _act_on_overflow(change, attempt, error, package)
        return 0.0
    dialog.tries += 1
    if reply.ending is Ending.ABORTED:
        log.warning("stream_aborted", dialog_id=str(dialog.pk), reason=reply.reason)
        rounds.record_context_error(dialog, "TOKEN_LIMIT_EXCEEDED", reply.reason)
    delay = delay_before_retry(error, dialog.tries, random()) if error else None
    kind = dialog.agent.kind
    if delay and (dialog.tries >= kind.most_tries or delay > kind.longest_wait_seconds):
        delay = None
    if delay is not None:
        wake_after(change, delay, str(error))
        return delay
    dialog.repeats = {}
    if attempt.forced and isinstance(error, RequestRefused):
        suspension.suspend_within(change, Suspend(CRITICAL_KIND, f"The forced clear was refused: {error}"), package)
        return 0.0
    _keep_text(change, attempt, reply, Turn.Status.FAILED)
    if reason := repeats.lasting_refusal(attempt, error):
        suspension.suspend_within(change, Suspend(Question.Kind.REFUSED, reason))
        return 0.0
    dialog.failure = reply.reason
    if dialog.tries > 1:
        dialog.failure = f"{as_sentence(dialog.failure)} Given up after {dialog.tries} tries."
    if error and error.retry_after_seconds:  # programs are told when to ask again; the next message clears it
        dialog.wake_at = Now() + timedelta(seconds=min(error.retry_after_seconds, LONGEST_ADVICE_SECONDS))
    change.end_message(Turn.Status.FAILED)
    return 0.0


def _keep_text(change: Change, attempt: Attempt, reply: Reply, status: str) -> None:
    """Keep the part of an answer so far. The text of a forced clear is never kept."""
    thought = _reasoning_json(reply)
    if (reply.text or thought) and not attempt.forced:
        change.turn(Turn.Role.ASSISTANT, status, text=reply.text, reasoning=thought, generation=attempt.generation)


def _act_on_overflow(change: Change, attempt: Attempt, error: ContextOverflow, package: str) -> None:
    """Act as at a critical level. Inside a forced attempt nothing smaller can be sent, so a person is asked at once."""
    dialog = change.dialog
    rounds.record_context_error(dialog, "TOKEN_LIMIT_EXCEEDED", str(error))
    dialog.overflowed = True
    dialog.repeats = {}
    _learn_from_overflow(dialog, attempt, error)
    if not dialog.agent.kind.is_guided:  # only its policy can make the request shorter, in a few tries
        dialog.changed_since_rewrite = True
        if dialog.restarts >= MAX_RESTARTS:
            dialog.failure = str(error)
            change.end_message(Turn.Status.FAILED)
        return
    set_counters(dialog, judge_last_clear(counters_of(dialog), Level.CRITICAL))  # a clear before did not help
    if attempt.forced:
        reason = f"The forced clear itself is too long: {error}"
        suspension.suspend_within(change, Suspend(CRITICAL_KIND, reason), package)


def _learn_from_overflow(dialog: Dialog, attempt: Attempt, error: ContextOverflow) -> None:
    """Correct the estimates by a refused request, as by a report.

    If the refusal tells no size, the request is taken to exceed the window by one token. Nothing is learned if the
    estimate exceeds the window already, or is below it by a factor of ``MOST_SLOPE``: no vocabulary differs so much, so
    the request was refused for its bytes.
    """
    counted, window = attempt.counted, attempt.thresholds.context_limit
    if counted is None or attempt.prepared.guided:
        return
    known, told = calibration_of(dialog), error.prompt_tokens
    if told is None:
        expected = (known or Calibration()).expected(counted)
        if window is None or not expected <= window < expected * MOST_SLOPE:
            return
        told = window + 1
    dialog.calibration_fit = calibrate(known, counted, told).numbers


def _calls_json(generation: Generation, calls: tuple[ToolCall, ...]) -> list[dict[str, str]] | None:
    """Return the calls as JSON under new ids, since some providers repeat an id in later answers, or send none.

    Names are cut and cleaned, since models make up any.
    """
    return [
        {
            "id": f"call_{generation.pk}_{number}",
            "name": storable(call.name)[:MOST_NAME_CHARS],
            "arguments": storable(call.arguments),
        }
        for number, call in enumerate(calls, 1)
    ] or None


def _reasoning_json(reply: Reply) -> dict[str, Any] | None:
    # The beginning is not stripped, since readers count characters from there.
    text = storable(reply.reasoning).rstrip()
    return {"text": text, "ms": reply.reasoning_ms} if text else None


def generation_of_call(call_id: str) -> int | None:
    """Return the generation that made a call, by the id that the runtime gave it, or None for a foreign id."""
    match = re.fullmatch(r"call_([0-9]{1,18})_[0-9]{1,9}", call_id)
    return int(match[1]) if match else None
