"""Rows of model calls, made without any model."""

from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from dialogs.models import Dialog, Generation
from health.models import HealthSnapshot
from tests.dialogs.factories import make_dialog


def generation(dialog: Dialog, *, outcome: str = "kept", ago: timedelta = timedelta(0), **columns: Any) -> Generation:
    begun = timezone.now() - ago
    columns = {"purpose": "reply", "epoch": 1, "round_number": 1, "provider": "test", "model": "model", **columns}
    ended = None if outcome == "running" else begun + timedelta(seconds=2)
    return Generation.objects.create(dialog=dialog, outcome=outcome, started_at=begun, finished_at=ended, **columns)


def snapshot(of: Generation, level: str) -> HealthSnapshot:
    reason = "usage_unavailable" if level == "unknown" else ""
    return HealthSnapshot.objects.create(generation=of, level=level, reason=reason, optimal_max_tokens=100)


def analysed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def an_old_dialog(*, calls: int, newer: int) -> Dialog:
    """With its calls, before which another dialog's stand in the lists of all."""
    old, new = make_dialog(), make_dialog()
    columns = {"round_number": 1, "purpose": "reply", "outcome": "kept", "epoch": 1, "provider": "p", "model": "m"}
    made = Generation.objects.bulk_create(
        (Generation(dialog=dialog, **columns) for dialog in [old] * calls + [new] * newer), batch_size=500
    )
    HealthSnapshot.objects.bulk_create(
        (HealthSnapshot(generation=call, prompt_tokens=9, optimal_max_tokens=100, level="healthy") for call in made),
        batch_size=500,
    )
    analysed()
    return old
