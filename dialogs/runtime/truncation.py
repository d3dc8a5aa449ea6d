"""Whether a server cut a request without a word, judged by what it reported of those before (R13)."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet, Sum

from dialogs.models import Generation
from dominds.db.prepared import Select
from dominds.llm.usage import Usage
from health.levels import UnknownReason
from health.models import HealthSnapshot
from health.truncation import SentRequest, truncation_suspected


def suspected(generation: Generation, usage: Usage) -> bool:
    """R13, against the last kept report of the round that was believed: a server that truncates goes on doing so."""
    previous = _BELIEVED.first(generation.dialog_id, generation.round_number, generation.pk)
    if previous is None:
        return False
    frame, base, chars, guided, prompt_tokens = previous
    if prompt_tokens is None:
        return False
    sent = SentRequest(frame, base, chars, guided, prompt_tokens)
    now = SentRequest(
        generation.frame, generation.base, generation.request_chars, generation.guided, usage.prompt_tokens
    )
    if now.prompt_tokens > sent.prompt_tokens:
        return False  # grown: no need to add up the round
    kept = _kept_before(generation.dialog_id, generation.round_number, generation.pk)
    completion = kept.aggregate(total=Sum("completion_tokens"))["total"] or 0
    return truncation_suspected(sent, now, completion)


def _kept_before(dialog_id: UUID, round_number: int, generation_id: int) -> QuerySet[Generation]:
    return Generation.objects.filter(
        dialog_id=dialog_id,
        round_number=round_number,
        purpose=Generation.Purpose.REPLY,
        outcome=Generation.Outcome.KEPT,
        pk__lt=generation_id,
    )


def _believed_before(dialog_id: UUID, round_number: int, generation_id: int) -> QuerySet[Generation, Any]:
    doubted = HealthSnapshot.objects.filter(reason=UnknownReason.TRUNCATION_SUSPECTED)
    believed = _kept_before(dialog_id, round_number, generation_id).exclude(snapshot__in=doubted).order_by("-id")
    return believed.values_list("frame", "base", "request_chars", "guided", "prompt_tokens")[:1]


_BELIEVED = Select(_believed_before)
