"""Pages of rewrites that took thousands of units in."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.models import Dialog
from remediation.models import RemediationRun, RemovedUnit
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import RewriteFactory, make_dialog

pytestmark = pytest.mark.django_db(transaction=True)
UNITS = 5_000


def rewritten(units: int) -> tuple[Dialog, RemediationRun]:
    dialog = make_dialog()
    view = [
        {
            "id": f"summary-{at}",
            "kind": "summary",
            "role": "user",
            "sources": [at],
            "is_new": True,
            "priority": 5,
            "area": "",
            "pinned": False,
            "messages": [{"role": "user", "text": f"kept {at}", "tool_calls": [], "tool_call_id": ""}],
        }
        for at in range(units)
    ]
    run = RewriteFactory.create(
        dialog=dialog, view=view, removed=[{"id": f"turn-{at}", "turns": [at]} for at in range(units)]
    )
    RemovedUnit.objects.bulk_create(
        RemovedUnit(
            run=run, dialog=dialog, unit_id=f"turn-{at}", kind="message", role="user", est_tokens=1, text=f"gone {at}"
        )
        for at in range(units)
    )
    return dialog, run


def test_the_context_reads_no_rewrite_for_its_units(script: Script) -> None:
    dialog, _ = rewritten(UNITS)
    browser = browser_of(dialog.owner)
    browser.get(f"/d/{dialog.pk}/context/")
    begun_at = time.thread_time()
    with CaptureQueriesContext(connection) as asked:
        page = browser.get(f"/d/{dialog.pk}/context/").content.decode()
    assert time.thread_time() - begun_at < 2
    assert f"{UNITS} messages went to the archive" in page
    from_runs = [query["sql"] for query in asked if "remediation_remediationrun" in query["sql"]]
    listed = [sql for sql in from_runs if '"remediation_remediationrun"."reason"' in sql and "LIMIT 1" not in sql]
    assert listed
    assert not any('"remediation_remediationrun"."removed"' in sql for sql in from_runs)
    assert not any('"remediation_remediationrun"."view"' in sql for sql in listed)


def test_a_long_rewrite_is_shown_page_by_page(script: Script) -> None:
    dialog, run = rewritten(120)
    browser = browser_of(dialog.owner)
    pages = [browser.get(f"/d/{dialog.pk}/archive/{run.pk}/?page={at}").content.decode() for at in (1, 2, 3, 4, 5)]
    assert [page.count("archived gone") for page in pages] == [25, 25, 25, 25, 20]
    assert [page.count("archived new") for page in pages] == [25, 25, 25, 25, 20]
    assert "gone 0<" in pages[0]
    assert pages[0].index("kept 0<") < pages[0].index("gone 0<") < pages[0].index("kept 1<") < pages[0].index("gone 1<")
    assert "kept 119<" in pages[4]
    assert all("120 changed or gone, 120 stand" in page for page in pages)


def test_the_page_of_a_large_rewrite_asks_little_and_measures_once(script: Script) -> None:
    dialog, run = rewritten(UNITS)
    browser = browser_of(dialog.owner)
    begun_at = time.thread_time()
    browser.get(f"/d/{dialog.pk}/archive/{run.pk}/")
    assert time.thread_time() - begun_at < 20, "measured in full"
    begun_at = time.thread_time()
    with CaptureQueriesContext(connection) as asked:
        page = browser.get(f"/d/{dialog.pk}/archive/{run.pk}/?page=7").content.decode()
    assert time.thread_time() - begun_at < 2
    assert page.count("archived gone") == page.count("archived new") == 25
    assert len(asked) < 40
