"""Entries of a transcript."""

import pytest

from dialogs.pages.entries import turn_entries
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_with_a_result_is_done_wherever_its_turn_stands(script: Script) -> None:
    calls = [{"name": "add_reminder", "arguments": {"content": text}} for text in ("one", "two")]
    script({"tool_calls": calls}, {"text": "Done."})
    dialog = send(make_dialog(recall=False), "Remember")
    asking = dialog.turns.get(role="assistant", tool_calls__isnull=False)
    newest = dialog.turns.filter(role="tool").order_by("position")[1]
    assert turn_entries(dialog, [newest, asking])[1].calls == ()
