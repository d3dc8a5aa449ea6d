"""A dialog whose agent asks before it uses tools of the tests' MCP server, and the person who answers."""

from typing import Any

from dialogs.actions import questions
from dialogs.models import Dialog, Question
from dialogs.runtime.driver import drive

REMEMBER = {"name": "desk_remember", "arguments": {"text": "the boat leaves at nine"}}
BOOK: dict[str, Any] = {"name": "desk_book_trip_now", "arguments": {}}
ECHO = {"name": "desk_echo", "arguments": {"text": "hello"}}


def results(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.turns.filter(role="tool").order_by("position").values_list("status", "text"))


def open_question(dialog: Dialog) -> Question:
    dialog.refresh_from_db()
    assert dialog.state == "waiting"
    return dialog.questions.get(state="open")


def answer(dialog: Dialog, text: str) -> None:
    questions.answer(open_question(dialog).pk, dialog.owner, text)
    drive(dialog.pk)
    dialog.refresh_from_db()
