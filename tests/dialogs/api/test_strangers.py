"""Two people and every address of ``/api`` there is: what belongs to one does not exist for the other."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dialogs.actions import messages, reminders
from dialogs.actions.attachments import check_files
from dialogs.actions.questions import ASK_HUMAN
from dialogs.api.application import api
from dialogs.models import Dialog, Question
from dialogs.runtime.driver import drive
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, make_operator
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)

QUERIES = {"compare_requests": "?with=1"}
BODIES: dict[str, Any] = {
    "post_message": {"text": "Hi"},
    "add_reminder": {"text": "x"},
    "change_reminder": {"text": "x"},
    "clear": {"reminder_content": "x"},
    "try_recall": {"text": "x"},
    "answer": {"text": "x"},
    "resolve": {"action": "close"},
    "fork": {},
    "regenerate": {},
    "edit": {"text": "x"},
    "rate": {"feedback": "up"},
    "pin": {"pinned": True},
    "share_dialog": {"group": None},
    "choose_model": {"model": ""},
    "edit_task": {"section": "goal", "text": "x", "version": 0},
}


def owned_calls() -> Iterator[tuple[str, str, str]]:
    """(method, path with placeholders, name) of each call that names something of somebody's."""
    for prefix, router in api._routers:
        for path, view in router.path_operations.items():
            if "{" in path:
                for operation in view.operations:
                    for method in operation.methods:
                        yield method, prefix + path, operation.view_func.__name__


CALLS = sorted(owned_calls())


def test_the_matrix_sees_the_whole_api() -> None:
    assert len(CALLS) >= 25


@pytest.fixture
def belongings(script: Script) -> dict[str, Any]:
    """One of everything that an address can name, all of one person."""
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which?"}}]}, {"text": "ok"})
    dialog = make_dialog()
    reminder = reminders.add(dialog.pk, "keep")
    messages.post_message(dialog.pk, "Hi", attached=check_files([("a.png", picture())]))
    drive(dialog.pk)
    messages.post_message(dialog.pk, "queued")
    rows = {
        "question_id": Question.objects.get(dialog=dialog).pk,
        "reminder_id": reminder.pk,
        "sha256": dialog.attachments.get().sha256,
    }
    return {"dialog_id": dialog.pk, **rows, "run_id": 1, "generation_id": 1, "seq": 3, "side_id": dialog.pk}


def rows_of(dialog: Dialog) -> list[Any]:
    """Everything stored of a dialog, to see that a refused call wrote nothing."""
    own = list(Dialog.objects.filter(pk=dialog.pk).values())
    return [own, list(dialog.turns.values()), list(dialog.reminders.values()), list(dialog.questions.values())]


def test_a_stranger_finds_nothing_and_changes_nothing(belongings: dict[str, Any]) -> None:
    dialog = Dialog.objects.get(pk=belongings["dialog_id"])
    before = rows_of(dialog)
    stranger = Caller(make_dialog().owner)
    for method, path, name in CALLS:
        address = re.sub(r"{(?:\w+:)?(\w+)}", lambda value: str(belongings[value[1]]), path)
        address += QUERIES.get(name, "")
        assert code_of(stranger(method, address, BODIES.get(name))) == (404, "not_found"), address
        if method == "GET":
            streamed = stranger(method, address, headers={"Accept": "text/event-stream"})
            assert code_of(streamed) == (404, "not_found"), address
        assert rows_of(dialog) == before, address


def test_lists_hold_ones_own_things_and_operators_see_all(belongings: dict[str, Any]) -> None:
    stranger = Caller(make_dialog().owner)
    assert str(belongings["dialog_id"]) not in [row["id"] for row in stranger.get("/dialogs")]
    assert stranger.get("/questions") == []
    stranger = Caller(make_operator())
    assert str(belongings["dialog_id"]) in [row["id"] for row in stranger.get("/dialogs")]
    assert [row["id"] for row in stranger.get("/questions")] == [str(belongings["question_id"])]
