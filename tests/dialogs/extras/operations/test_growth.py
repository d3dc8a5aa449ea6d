"""That what is shown of many rows is found by an index, or ends early. Plans, not times."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dialogs.extras.operations import dashboard
from dialogs.models import Dialog, Generation, Question, Turn
from dialogs.pages.dialog_page import usage_points
from dialogs.runtime.truncation import _credible_before
from dominds.db import bounded
from dominds.db.bounded import BoundedPaginator
from health.models import HealthSnapshot
from remediation.models import RemediationRun
from tests.dialogs.calls import an_old_dialog, analysed
from tests.dialogs.factories import make_dialog, make_operator

pytestmark = pytest.mark.django_db(transaction=True)


def many(number: int = 3_000) -> list[Dialog]:
    first = make_dialog()
    rows = [Dialog(owner=first.owner, agent=first.agent) for _ in range(number)]
    Dialog.objects.bulk_create(rows, batch_size=500)
    return rows


def test_everybodys_newest_dialogs_are_found_by_an_index() -> None:
    many()
    analysed()
    shown = Dialog.objects.filter(archived_at=None).exclude(origin="background").order_by("-active_at", "pk")[:30]
    assert "dialog_newest" in shown.explain()


def test_questions_of_a_state_are_found_by_an_index() -> None:
    rows = many()
    Question.objects.bulk_create(Question(dialog=row, kind="question", state="answered", text="?") for row in rows)
    Question.objects.create(dialog=rows[0], kind="question", text="?")
    analysed()
    assert "question_by_state" in Question.objects.filter(state="answered").order_by("-created_at")[:50].explain()


def test_the_newest_calls_of_an_old_dialog_use_an_index() -> None:
    """Not by the snapshots of all dialogs from the newest on."""
    old = an_old_dialog(calls=100, newer=1_900)
    with CaptureQueriesContext(connection) as asked:
        assert len(usage_points(old)) == 60
    with connection.cursor() as cursor:
        words = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        cursor.execute(f"{words} {asked.captured_queries[-1]['sql']}")
        plan = str(cursor.fetchall())
    assert "generation_newest" in plan, plan


def test_truncation_looks_only_at_the_calls_of_its_dialog() -> None:
    dialog = make_dialog()
    with CaptureQueriesContext(connection) as asked:
        _credible_before(dialog.pk, 1, 9)
    assert " IN (SELECT" not in asked.captured_queries[0]["sql"]


def test_pages_end_early_and_so_does_their_count(monkeypatch: pytest.MonkeyPatch) -> None:
    many(40)
    monkeypatch.setattr(bounded, "MOST_ROWS", 20)
    pages = BoundedPaginator(Dialog.objects.order_by("-active_at", "pk"), 6)
    with CaptureQueriesContext(connection) as asked:
        assert (pages.count, pages.num_pages, pages.is_cut) == (20, 4, True)
    assert "LIMIT 21" in asked.captured_queries[0]["sql"] and "ORDER BY" not in asked.captured_queries[0]["sql"]
    assert not BoundedPaginator(Dialog.objects.filter(pk=uuid4()).order_by("pk"), 6).is_cut


@pytest.mark.parametrize(
    "model", [Dialog, Turn, Generation, HealthSnapshot, RemediationRun], ids=lambda model: model.__name__
)
def test_the_admin_looks_for_an_id_as_one(model: Any) -> None:
    dialog, browser = make_dialog(), Client()
    browser.force_login(make_operator())
    address = reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")
    with CaptureQueriesContext(connection) as asked:
        assert browser.get(f"{address}?q={dialog.pk}").status_code == 200
    results = [query["sql"] for query in asked.captured_queries if model._meta.db_table in query["sql"]]
    assert results and not any("UPPER" in sql or " LIKE " in sql for sql in results), results


def test_the_admin_says_where_a_list_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    many(30)
    browser = Client()
    browser.force_login(make_operator())
    assert b"Filter or search for others" not in browser.get(reverse("admin:dialogs_dialog_changelist")).content
    monkeypatch.setattr(bounded, "MOST_ROWS", 20)
    assert b"Filter or search for others" in browser.get(reverse("admin:dialogs_dialog_changelist")).content


def test_the_dashboard_counts_only_states_that_few_are_in() -> None:
    many(3)
    with CaptureQueriesContext(connection) as asked:
        dashboard.cards(dashboard.Recent([], []))
    assert "idle" not in asked.captured_queries[0]["sql"]
    assert dashboard.dialogs_by_state()["idle"] == 4


def test_rows_since_a_moment_are_found_beside_copies_of_older_ones() -> None:
    """A fork takes rewrites along, with the times at which they were made."""
    dialog = make_dialog()
    columns = {"dialog": dialog, "round_number": 1, "policy": "p", "reason": "", "est_before": 2, "est_after": 1}
    made = [RemediationRun.objects.create(**columns, base_position=1, view=[], removed=[]) for _ in range(6)]
    copied = dialog.created_at - timedelta(days=30)
    for run in made[1::2]:
        RemediationRun.objects.filter(pk=run.pk).update(created_at=copied)
    moment = RemediationRun.objects.get(pk=made[2].pk).created_at
    result = dashboard.first_since(RemediationRun.objects.counted(), "created_at", moment)
    assert made[0].pk < result <= made[2].pk
