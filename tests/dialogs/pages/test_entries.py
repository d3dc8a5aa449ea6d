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


def test_arguments_are_read_in_the_order_in_which_the_tool_reads_them(script: Script) -> None:
    script(
        {"tool_calls": [{"name": "add_reminder", "arguments": {"content": "pay 9\u202e001 👩\u200d🔧"}}]},
        {"text": "Done."},
    )
    dialog = send(make_dialog(recall=False), "Remember")
    (call,) = turn_entries(dialog, [dialog.turns.get(role="tool")])[0].calls
    assert call.hint == "pay 9\\u202e001 👩\u200d🔧"
    assert call.hint in call.arguments
