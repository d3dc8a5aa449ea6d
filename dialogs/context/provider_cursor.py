"""The cursor that a provider wants back with the next call of a conversation."""

from uuid import UUID

from django.db.models import QuerySet

from dialogs.models import Dialog, Generation
from dominds.db.prepared import Select
from dominds.llm.catalog.catalog import ModelInfo


def cursor_of(dialog: Dialog, model: ModelInfo, purpose: str = "") -> str:
    """Return the cursor of the newest call to this model, in the conversation or for a side ``purpose``; else empty."""
    if not model.has_cursor:
        return ""
    if purpose:
        return _side_cursors.first(dialog.pk, model.provider_id, model.model_id, purpose) or ""
    return _cursors.first(dialog.pk, model.provider_id, model.model_id) or ""


@Select
def _cursors(dialog_id: UUID, provider: str, model: str) -> QuerySet[Generation, str]:
    purposes = [Generation.Purpose.REPLY, Generation.Purpose.FORCED_CLEAR]
    calls = Generation.objects.filter(dialog_id=dialog_id, provider=provider, model=model, purpose__in=purposes)
    return _newest_cursor(calls)


@Select
def _side_cursors(dialog_id: UUID, provider: str, model: str, purpose: str) -> QuerySet[Generation, str]:
    return _newest_cursor(
        Generation.objects.filter(dialog_id=dialog_id, provider=provider, model=model, purpose=purpose)
    )


def _newest_cursor(calls: QuerySet[Generation]) -> QuerySet[Generation, str]:
    over = calls.exclude(outcome__in=[Generation.Outcome.CRASHED, Generation.Outcome.RUNNING])
    return over.order_by("-id").values_list("cursor", flat=True)[:1]
