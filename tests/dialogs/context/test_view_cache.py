"""A view grows by the turns since the last look, and is what reading all of them at once would give."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from dialogs.context.units import group
from dialogs.context.view import view_of
from dialogs.context.view_cache import Head, messages_of
from dialogs.models import Dialog, Turn
from dominds.llm.messages import are_plain, chars_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send


def turn(
    position: int, role: str, text: str, calls: tuple[str, ...] = (), result_of: str = "", status: str = "complete"
) -> Any:
    made = [{"id": call, "name": "look", "arguments": "{}"} for call in calls]
    return SimpleNamespace(
        seq=position,
        position=position,
        role=role,
        status=status,
        text=text,
        tool_calls=made or None,
        tool_call_id=result_of,
        tool_name="",
        provider_items=None,
        attachments=None,
    )


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Messages, answers, whole or cut off, and calls, whose results come at once, later, out of order or never."""
    rows: list[Any] = []
    waiting: list[str] = []
    for position in range(1, draw(st.integers(0, 24)) + 1):
        kind = draw(st.sampled_from(["user", "answer", "cut off", "calls", *["result"] * 3 * bool(waiting)]))
        match kind:
            case "user":
                rows.append(turn(position, "user", f"m{position}"))
            case "answer":
                rows.append(turn(position, "assistant", f"a{position}"))
            case "cut off":
                status = draw(st.sampled_from(["failed", "stopped"]))
                rows.append(turn(position, "assistant", f"b{position}", status=status))
            case "calls":
                made = tuple(f"c{position}-{n}" for n in range(draw(st.integers(1, 3))))
                waiting += made
                rows.append(turn(position, "assistant", "", calls=made))
            case _:
                call = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
                rows.append(turn(position, "tool", f"r {call}", result_of=call))
    return rows


@given(conversations(), st.lists(st.integers(0, 24)))
def test_a_head_grown_in_steps_equals_one_read_at_once(rows: list[Any], cuts: list[int]) -> None:
    head = Head(0, ())
    places = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    for start, end in pairwise(places):
        head = head.followed_by(rows[start:end])
        assert (*head.settled, *group(head.open_rows)) == tuple(group(rows[:end]))
        assert head.messages == messages_of(head.settled)
        assert head.chars == chars_of(head.messages)
        assert head.is_plain == are_plain(head.messages)
        assert head.position == rows[end - 1].position


@pytest.mark.django_db(transaction=True)
class TestOnRows:
    @pytest.fixture
    def dialog(self, script: Script) -> Dialog:
        script({"text": "Noted."})
        dialog = make_dialog()
        for number in range(5):
            send(dialog, f"Message {number}")
        return dialog

    def test_a_second_look_reads_only_what_came_since(self, dialog: Dialog) -> None:
        before = view_of(dialog).units
        send(dialog, "One more")
        with CaptureQueriesContext(
            connection,
        ) as looked:
            view = view_of(dialog)
        units = view.units
        assert [unit.text for unit in units] == [*(unit.text for unit in before), "One more", "Noted."]
        since = [query["sql"] for query in looked if '"dialogs_turn"' in query["sql"]]
        assert len(since) == 1 and "position" in since[0]
        assert view.messages == messages_of(units)
        assert view.chars == chars_of(view.messages)

    def test_what_a_transaction_read_and_took_back_is_forgotten(self, dialog: Dialog) -> None:
        with transaction.atomic():
            Turn.objects.create(
                dialog=dialog, seq=99, position=11, round_number=1, role="user", status="answered", text="Taken back"
            )
            assert view_of(dialog).units[-1].text == "Taken back"
            transaction.set_rollback(True)
        send(dialog, "Stays")
        assert "Taken back" not in [unit.text for unit in view_of(dialog).units]
        assert view_of(dialog).units[-2].text == "Stays"
