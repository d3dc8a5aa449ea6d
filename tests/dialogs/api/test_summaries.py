"""Summaries and management of a context: by the page, by a program, and by an agent's own policy."""

import pytest
from django.test import Client

from dialogs.accounts import api_keys
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)


def talked(script: Script, turns: int, **agent: object) -> Dialog:
    script({"text": "Noted, and I go on with the next part of it. " * 12}, context_length=4_000)
    dialog = make_dialog(**agent)
    for number in range(turns):
        send(dialog, f"Part {number}: the ship {number + 4_700} sails.")
    return dialog


def test_a_page_and_a_program_ask_for_a_summary(script: Script) -> None:
    dialog = talked(script, 8)
    page = browser_of(dialog.owner).get(f"/d/{dialog.pk}/context/?preview=summarize").content.decode()
    assert "Summarize" in page
    assert "gone" in page or "goes" in page
    headers = {"Authorization": f"Bearer {api_keys.create_key(dialog.owner)}"}
    asked = Client().post(f"/api/dialogs/{dialog.pk}/summarize", headers=headers)
    assert asked.status_code == 202
    drive(dialog.pk)
    run = dialog.remediations.get()
    assert (run.policy, run.undone_at) == ("summarize", None)
    assert run.summary.startswith("Previous ")
    assert {"turn-1", "turn-2"} <= {item["id"] for item in run.removed}


def test_management_does_nothing_where_there_is_room(script: Script) -> None:
    dialog = talked(script, 2)
    browser = browser_of(dialog.owner)
    browser.post(f"/d/{dialog.pk}/context/auto-manage/", {"confirmed": "yes"})
    drive(dialog.pk)
    assert "Nothing to manage" in RemediationRun.attempts.get(dialog=dialog).rejected
    assert not dialog.context_events.exists(), "it is no error where the request fits"


def test_an_agent_has_summaries_for_its_policy(script: Script) -> None:
    dialog = talked(script, 24, context_policy="summarize")
    runs = list(dialog.remediations.order_by("pk"))
    assert runs
    assert {run.policy for run in runs} == {"summarize"}
    assert all(run.est_after < run.est_before for run in runs)
    assert "older messages" in browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode().lower()
