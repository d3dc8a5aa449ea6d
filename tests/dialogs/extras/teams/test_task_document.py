"""The task document: two writers lose nothing."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from dialogs.errors import Conflict
from dialogs.extras.teams import task_document
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.extras.teams.conftest import asking, results, side_of, steps
from tests.dialogs.factories import send

pytestmark = pytest.mark.django_db(transaction=True)

EDITS = 60  # of each of two writers


def test_of_two_writers_edits_none_is_lost_and_refusals_say_why(lead: Dialog) -> None:
    def write(name: str) -> int:
        refused = 0
        for number in range(EDITS):
            while True:
                now = task_document.newest(lead.pk)
                text = f"{now.sections['plan']}\n{name} {number}".strip()
                try:
                    task_document.edit(lead, "plan", text, now.version)
                    break
                except Conflict as conflict:
                    assert "What changed since:\n## Plan and progress\n+" in conflict.message
                    refused += 1
        connection.close()
        return refused

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("ada", "bob")))
    now = task_document.newest(lead.pk)
    lines = now.sections["plan"].splitlines()
    assert now.version == 2 * EDITS
    assert sorted(lines) == sorted(f"{name} {number}" for name in ("ada", "bob") for number in range(EDITS))


def test_a_side_dialog_is_given_the_document_and_may_edit_it(lead: Dialog, script: Script) -> None:
    task_document.edit(lead, "goal", "A night in the hut.", 0)
    edits = [
        {"name": "edit_task", "arguments": {"section": "decisions", "text": "The Heron.", "version": version}}
        for version in (1, 1)
    ]
    script({"match": r"\AFind the hut", "tool_calls": edits}, *steps(asking()))
    send(lead, "plan")
    side = side_of(lead)
    drive(side.pk)
    assert "A night in the hut." in side.dialog.turns.get(role="user").text
    written, stale = results(side.dialog)
    assert written == "Written. The task document is at version 2."
    assert stale.endswith("What changed since:\n## Decisions\n+The Heron.")
