"""What changes often touches no index, so that PostgreSQL can keep the new row beside the old
one and reuse its place."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from dialogs.actions import messages
from dialogs.models import Dialog, Turn
from dialogs.store.change import open_change
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db


def updated(table: str) -> tuple[int, int]:
    """Rows of it that this connection has updated of late, and how many of them in place."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_get_xact_tuples_updated(%s::regclass), pg_stat_get_xact_tuples_hot_updated(%s::regclass)",
            [table, table],
        )
        all_of_them, in_place = cursor.fetchone()
    return all_of_them, in_place


def test_a_message_is_marked_as_answered_in_place(script: Script) -> None:
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Hi")
    before = updated("dialogs_turn")
    with open_change(dialog.pk) as change:
        change.end_message(Turn.Status.ANSWERED)
    assert updated("dialogs_turn") == (before[0] + 1, before[1] + 1)


def test_a_lease_is_renewed_in_place() -> None:
    dialog = make_dialog()
    before = updated("dialogs_dialog")
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=Now() + timedelta(seconds=1))
    assert updated("dialogs_dialog") == (before[0] + 1, before[1] + 1)


def test_events_are_added_in_place() -> None:
    dialog = make_dialog()
    before = updated("dialogs_event")
    for number in range(3):
        with open_change(dialog.pk) as change:
            change.event("notice", text=str(number))
    assert updated("dialogs_event") == (before[0] + 2, before[1] + 2)


def test_what_is_queued_is_found_by_an_index() -> None:
    dialog = make_dialog()
    columns = {"dialog": dialog, "round_number": 1, "role": "user", "status": "answered"}
    Turn.objects.bulk_create(Turn(**columns, seq=number, position=number) for number in range(1, 2_001))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE dialogs_turn")
    for limit in (1, 100):  # the oldest, or all of them
        plan = Turn.objects.queued().filter(dialog=dialog).order_by("seq")[:limit].explain()
        assert "turn_position" in plan and "IS NULL" in plan.split("Index Cond")[1].split("\n")[0], plan
