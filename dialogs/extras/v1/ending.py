"""How an answer ended: why, with which calls for its program, or with which error."""

import math
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from dialogs.context.view import without_results
from dialogs.extras.v1.errors import ApiError, refused_by_provider
from dialogs.extras.v1.health import calls_for, calls_of, report_of, report_with, usage_of
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.pieces import Ended
from dialogs.extras.v1.runs import Run, note_answer
from dialogs.models import Dialog, Drive, Generation, Question, Turn
from dialogs.runtime import client_tools
from dominds.db.prepared import Select, update
from dominds.llm.circuit_breaker import NOT_CALLED
from dominds.llm.provider import (
    AccessDenied,
    AuthFailed,
    MalformedStream,
    NetworkFailed,
    OutputAboveMaximum,
    Overloaded,
    ProviderTimeout,
    RateLimited,
    RefusedForGood,
    RequestRefused,
    TooLargeForRate,
    Unreachable,
)
from dominds.llm.stream import CUT_SHORT, FinishReason
from remediation.models import ContextEvent

OVERFLOWS = ("context_overflow", "output_budget", "context_full")
REFUSALS = (RequestRefused.kind, RefusedForGood.kind, OutputAboveMaximum.kind)
AWAY = tuple(
    error.kind for error in (RateLimited, Overloaded, NetworkFailed, MalformedStream, ProviderTimeout, Unreachable)
)
AWAY_SECONDS = 10


@Select
def _newest_calls(dialog_id: UUID, seq: int, after: int) -> QuerySet[Generation]:
    return calls_for(dialog_id, seq, after).order_by("-pk")


@Select
def _newest_reply(dialog_id: UUID, seq: int, after: int) -> QuerySet[Turn, Any]:
    replies = Turn.objects.filter(dialog_id=dialog_id, role=Turn.Role.ASSISTANT)
    replies = replies.filter(generation__answers_seq=seq, generation__gt=after)
    return replies.order_by("-seq").values_list("tool_calls", flat=True)[:1]


@Select
def _dialog(dialog_id: UUID) -> QuerySet[Dialog]:
    return Dialog.objects.filter(pk=dialog_id).select_related("agent", "client")


def finish(run: Run, status: str, answer: str) -> Ended:
    ended = ended_by(run, status)
    note_answer(run, answer)
    if "logprobs" in ended.fields:  # they are kept until they are told, since they are many times as long as the answer
        newest = _newest_calls(run.dialog_id, run.seq, run.after_generation)[0]
        fields = {name: value for name, value in (newest.provider_fields or {}).items() if name != "logprobs"}
        update(Generation, {"id": newest.pk}, {"provider_fields": fields or None})
    return ended


def ended_by(run: Run, status: str) -> Ended:
    """Return how the answer ended. Raises ``ApiError`` when there is none."""
    if status == Turn.Status.SUPERSEDED:
        raise ApiError(409, "message_superseded", "A person closed the dialog, or took the message back.")
    generations = _newest_calls(run.dialog_id, run.seq, run.after_generation)
    last = generations[0] if generations else None
    if status == Turn.Status.SUSPENDED:
        raise _suspension(run, last)
    dialog = _dialog.one(run.dialog_id)
    if status == Turn.Status.FAILED:  # a repeated request may have come after the call began
        raise _failure(dialog, last or next(iter(_newest_calls(run.dialog_id, run.seq, 0)), None))
    calls = _calls_for_client(run, dialog) if status == Turn.Status.ANSWERED else ()
    reason = _reason(last)
    reason = "tool_calls" if calls and reason != "length" else reason  # a cut answer may end inside a call
    fields = fields_of(last)
    if fields.pop("refusal", "") and reason == "content_filter":
        reason = "stop"  # the refusal says why
    return Ended(reason, calls, usage_of(generations), report_with(run, dialog, generations), fields)


def fields_of(last: Generation | None) -> dict[str, Any]:
    """Return what the provider said beside an answer."""
    return dict(last.provider_fields or {}) if last and not last.error_kind else {}


def end_with_question(run: Run) -> Ended:
    """End the answer so far as a question to the person."""
    return Ended("stop", (), usage_of(calls_of(run).order_by("-pk")), report_of(run))


def _reason(last: Generation | None) -> str:
    if last is None or last.finish_reason not in (*CUT_SHORT, FinishReason.REFUSAL):
        return "stop_sequence" if last and last.finish_reason == FinishReason.STOP_SEQUENCE else "stop"
    return "content_filter" if last.finish_reason == FinishReason.REFUSAL else "length"


def _suspension(run: Run, last: Generation | None) -> ApiError:
    """Explain why a person's dialog is suspended. A provider's refusal is told as a program's own would be."""
    refusals = Question.objects.filter(dialog=run.dialog_id, state=Question.State.OPEN, kind=Question.Kind.REFUSED)
    if refusal := refusals.values_list("text", flat=True).first():
        return _refusal(last, refusal) or ApiError(400, "refused_by_provider", refusal)
    return ApiError(
        409,
        "dialog_suspended",
        "The dialog is suspended: a question must be resolved, about a critical context or a budget.",
    )


def _refusal(last: Generation | None, words: str) -> ApiError | None:
    """Return what the provider refused with its own status, where the refusal is one that lasts."""
    if last is not None and last.error_kind == AuthFailed.kind:
        return ApiError(401, "provider_authentication", words)
    if last is not None and last.error_kind == AccessDenied.kind:
        return ApiError(403, "provider_permission", words)
    if last is not None and last.error_kind in REFUSALS:
        return refused_by_provider(words, (last.provider_fields or {}).get("status"))
    return None


def _failure(dialog: Dialog, last: Generation | None) -> ApiError:
    words = dialog.failure or (last.error if last else "")  # a message that waited clears ``failure``
    overflows = dialog.context_events.filter(code=ContextEvent.Code.TOKEN_LIMIT_EXCEEDED)
    if (last is not None and last.error_kind in OVERFLOWS) or overflows.filter(message=words).exists():
        return ApiError(400, "context_length_exceeded", words, param="messages")
    if last is not None and last.error_kind == TooLargeForRate.kind:
        return ApiError(429, "rate_limit_exceeded", words)
    if refusal := _refusal(last, words):
        return refusal
    if NOT_CALLED in words or (last is not None and last.error_kind in AWAY):
        wait = _advised_seconds(dialog)
        return ApiError(503, "provider_unavailable", words, retry_after_seconds=wait, repeatable=True)
    return ApiError(500, "generation_failed", words or "The answer failed.")


def _advised_seconds(drive: Drive) -> int:
    """Return what is left of the time that the provider asked to be left alone, or a usual one."""
    left = (drive.wake_at - timezone.now()).total_seconds() if drive.wake_at else 0
    return math.ceil(left) if left > 0 else AWAY_SECONDS


def _calls_for_client(run: Run, dialog: Dialog) -> tuple[Call, ...]:
    """Return the client's calls in the answer, whether or not the dialog has gone on with a message that waited."""
    made = _newest_reply.first(run.dialog_id, run.seq, run.after_generation)
    calls = client_tools.client_calls(dialog, without_results(made, frozenset())) if made else ()
    return tuple(Call(call.id, call.name, call.arguments) for call in calls)
