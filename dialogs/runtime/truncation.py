"""Suspicion that a server silently truncated a request, from the rows of the requests before it."""

from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Sum

from dialogs.models import ContextState, Dialog, Generation
from dominds.db.prepared import Select
from dominds.llm.usage import Usage
from health.levels import UnknownReason
from health.models import HealthSnapshot
from health.truncation import SentRequest, is_far_below, truncation_suspected


def is_suspected(dialog: Dialog, generation: Generation, text_chars: int, usage: Usage) -> bool:
    """Check whether the server seems to have truncated the request of this generation.

    Its report is compared with the newest earlier one of the round that was not suspected itself, since a server that
    truncates goes on doing so. ``dialog`` still has the report before this one. ``text_chars`` counts the characters of
    the request's messages.
    """
    if is_far_below(text_chars, usage.prompt_tokens):
        return True
    if _has_grown(dialog, usage):
        return False
    previous = _credible_before.first(generation.dialog_id, generation.round_number, generation.pk)
    if previous is None:
        return False
    frame, base, chars, guided, prompt_tokens = previous
    if prompt_tokens is None:
        return False
    sent = SentRequest(frame, base, chars, guided, prompt_tokens)
    current = SentRequest(
        generation.frame, generation.base, generation.request_chars, generation.guided, usage.prompt_tokens
    )
    if current.prompt_tokens > sent.prompt_tokens:
        return False  # the prompt has grown: no need to sum the round's completions
    completion = _completion_before.first(generation.dialog_id, generation.round_number, generation.pk) or 0
    return truncation_suspected(sent, current, completion)


def _has_grown(context_state: ContextState, usage: Usage) -> bool:
    """Check without a query whether the prompt has grown since the report in the dialog's row, as most do.

    False after failed clears, since the row then has the report of a forced clear and not of a reply.
    """
    is_of_reply = context_state.report == ContextState.Report.REPORTED and not context_state.failed_clears
    return is_of_reply and context_state.prompt_tokens is not None and usage.prompt_tokens > context_state.prompt_tokens


def _kept_before(dialog_id: UUID, round_number: int, generation_id: int) -> QuerySet[Generation]:
    return Generation.objects.filter(
        dialog_id=dialog_id,
        round_number=round_number,
        purpose=Generation.Purpose.REPLY,
        outcome=Generation.Outcome.KEPT,
        pk__lt=generation_id,
    )


@Select
def _completion_before(dialog_id: UUID, round_number: int, generation_id: int) -> QuerySet[Generation, int | None]:
    kept = _kept_before(dialog_id, round_number, generation_id)
    return kept.values("dialog_id").annotate(total=Sum("completion_tokens")).values_list("total", flat=True)


@Select
def _credible_before(dialog_id: UUID, round_number: int, generation_id: int) -> QuerySet[Generation, Any]:
    # Looked up for each generation: a list of all suspected ones, of any dialog, would be read from the whole table.
    suspected = HealthSnapshot.objects.filter(generation=OuterRef("pk"), reason=UnknownReason.TRUNCATION_SUSPECTED)
    credible = _kept_before(dialog_id, round_number, generation_id).filter(~Exists(suspected)).order_by("-id")
    return credible.values_list("frame", "base", "request_chars", "guided", "prompt_tokens")[:1]
