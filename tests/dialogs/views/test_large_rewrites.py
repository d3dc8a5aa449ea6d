"""Pages of rewrites that took thousands of units in."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.models import Dialog
from remediation.models import RemediationRun, RemovedUnit
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db(transaction=True)
UNITS = 5_000


def rewritten(units: int) -> tuple[Dialog, RemediationRun]:
    dialog = make_dialog()
    view = [
        {
            "id": f"summary-{at}", "kind": "summary", "role": "user", "sources": [], "priority": 5, "area": "",
            "pinned": False, "messages": [{"role": "user", "text": f"kept {at}", "tool_calls": [], "tool_call_id": ""}],
        }
        for at in range(units)
    ]  # fmt: skip
    run = RemediationRun.objects.create(
        dialog=dialog, round_number=1, policy="breaking", reason="test", est_before=2, est_after=1, base_position=1,
        view=view, removed=[{"id": f"turn-{at}", "turns": [at]} for at in range(units)],
    )  # fmt: skip
    RemovedUnit.objects.bulk_create(
        RemovedUnit(
            run=run, dialog=dialog, unit_id=f"turn-{at}", kind="message", role="user", est_tokens=1, text=f"gone {at}"
        )
        for at in range(units)
    )
    return dialog, run


def test_the_archive_reads_no_rewrite_for_its_units(script: Script) -> None:
    dialog, _ = rewritten(UNITS)
    browser = browser_of(dialog.owner)
    browser.get(f"/d/{dialog.pk}/archive/")
    begun_at = time.thread_time()
    with CaptureQueriesContext(connection) as asked:
        page = browser.get(f"/d/{dialog.pk}/archive/").content.decode()
    assert time.thread_time() - begun_at < 2
    assert page.count('<article class="archived">') == 50
    assert f'<td class="right">{UNITS}</td>' in page, "how many were removed"
    from_runs = [query["sql"] for query in asked if "remediation_remediationrun" in query["sql"]]
    listed = [sql for sql in from_runs if '"remediation_remediationrun"."reason"' in sql and "LIMIT 1" not in sql]
    assert listed
    assert not any('"remediation_remediationrun"."removed"' in sql for sql in from_runs)
    assert not any('"remediation_remediationrun"."view"' in sql for sql in listed)


def test_a_long_rewrite_is_shown_page_by_page(script: Script) -> None:
    dialog, run = rewritten(120)
    browser = browser_of(dialog.owner)
    pages = [browser.get(f"/d/{dialog.pk}/archive/{run.pk}/?page={at}").content.decode() for at in (1, 2, 3)]
    assert [page.count("archived gone") for page in pages] == [50, 50, 20]
    assert [page.count("archived new") for page in pages] == [50, 50, 20]
    assert "gone 0<" in pages[0]
    assert "kept 119<" in pages[2]
    assert all('<span class="count">120</span>' in page for page in pages)
