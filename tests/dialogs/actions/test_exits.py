"""An exit is a value: one that is added here is offered and taken by page, admin and API."""

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.actions import exits, questions, suspension
from dialogs.actions.exits import ChoiceField, Exit, Options, TextField
from dialogs.errors import Invalid
from dialogs.models import Dialog, Question
from dialogs.store.change import Change
from tests.dialogs.browsing import browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_operator
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

Rows = tuple[Dialog, Question]


def _hand_over(change: Change, question: Question, user: User, options: Options) -> None:
    suspension.resume(change)
    exits.begin_episode(change.dialog)
    change.dialog.title = f"{options['shift']}/{options['desk']}: {options['note']}"


HAND_OVER = Exit(
    "hand_over",
    "Hand over to a colleague",
    "with a note & a desk",
    _hand_over,
    fields=(
        TextField("note", "Note", initial=lambda question: "as asked", max_length=20),
        ChoiceField("place", "Place", lambda question: [("late/4", "late shift, desk 4")], options=("shift", "desk")),
    ),
    available=lambda question: "forced" in question.text,
    preview=lambda question: "what they will read",
)


@pytest.fixture
def added() -> Iterator[None]:
    take_back = exits.register(HAND_OVER)
    yield
    take_back()


@pytest.fixture
def suspended(script: Script) -> Rows:
    return suspended_dialog(script)


@pytest.fixture
def browser() -> Client:
    return browser_of(make_operator())


def addresses(question: Question) -> list[tuple[str, str]]:
    admin = f"/admin/dialogs/question/{question.pk}"
    return [(f"/q4h/{question.pk}/", f"/q4h/{question.pk}/resolve/"), (f"{admin}/change/", f"{admin}/resolve/")]


def title_after(rows: Rows) -> str:
    dialog, question = Dialog.objects.get(pk=rows[0].pk), Question.objects.get(pk=rows[1].pk)
    assert (dialog.state, question.state, question.action) == ("queued", "resolved", "hand_over")
    return dialog.title


@pytest.mark.parametrize("place", [0, 1], ids=["page", "admin"])
def test_a_new_exit_is_offered_and_taken_on_pages(suspended: Rows, browser: Client, added: None, place: int) -> None:
    page, button = addresses(suspended[1])[place]
    html = unescape(browser.get(page).content.decode())
    for words in ("Hand over to a colleague", "with a note & a desk", "as asked", "desk 4", "what they will read"):
        assert words in html
    assert browser.post(button, {"action": "hand_over", "note": "n" * 21, "place": "late/4"}).status_code == 400
    assert browser.post(button, {"action": "hand_over", "note": "red\r\none", "place": "late/4"}).status_code == 302
    assert title_after(suspended) == "late/4: red\none"


def test_a_new_exit_is_described_and_taken_by_programs(suspended: Rows, browser: Client, added: None) -> None:
    described = browser.get("/api/openapi.json").json()["components"]["schemas"]["ExitTaken"]
    assert described["properties"]["action"]["enum"][-1] == "hand_over"
    assert {"note", "shift", "desk", "reminder_content", "provider", "model"} <= set(described["properties"])
    body: dict[str, Any] = {"action": "hand_over", "note": "red", "shift": "late", "desk": "4", "user": "no option"}
    address = f"/api/questions/{suspended[1].pk}/resolve"
    assert browser.post(address, body | {"note": 7}, content_type="application/json").status_code == 400
    assert browser.post(address, body | {"note": "\x00"}, content_type="application/json").status_code == 400
    assert browser.post(address, body, content_type="application/json").status_code == 200
    assert title_after(suspended) == "late/4: red"


@pytest.mark.parametrize("place", [0, 1], ids=["page", "admin"])
def test_an_exit_is_gone_once_it_is_taken_back(suspended: Rows, browser: Client, place: int) -> None:
    exits.register(HAND_OVER)()
    page, button = addresses(suspended[1])[place]
    assert "hand_over" not in browser.get(page).content.decode()
    assert browser.post(button, {"action": "hand_over"}).status_code == 400
    with pytest.raises(Invalid, match="no exit 'hand_over'"):
        questions.resolve(suspended[1].pk, make_operator(), "hand_over")


def test_what_is_not_available_is_not_offered(suspended: Rows, browser: Client, added: None) -> None:
    Question.objects.filter(pk=suspended[1].pk).update(text="Something else.", draft="")
    for page, _ in addresses(suspended[1]):
        html = in_one_line(browser.get(page).content.decode())
        assert 'value="hand_over"' not in html
        assert 'value="accept_draft"' not in html
        assert 'value="clear" checked' in html


@pytest.mark.parametrize("place", [0, 1], ids=["page", "admin"])
def test_a_refusal_keeps_what_was_typed(suspended: Rows, browser: Client, added: None, place: int) -> None:
    page, button = addresses(suspended[1])[place]
    assert 'value="accept_draft" checked' in in_one_line(browser.get(page).content.decode())
    refused = browser.post(button, {"action": "clear", "reminder_content": " ", "note": "half a note"})
    html = in_one_line(refused.content.decode())
    assert refused.status_code == 400
    assert 'value="clear" checked' in html
    assert "half a note" in html


def test_names_of_exits_and_fields_differ(added: None) -> None:
    with pytest.raises(ValueError, match="already"):
        exits.register(HAND_OVER)
    with pytest.raises(ValueError, match="reminder_content"):
        exits.register(Exit("other", "", "", _hand_over, fields=(TextField("reminder_content", "Again"),)))


def test_the_exits_fit_their_column() -> None:
    names = [way.name for way in exits.EXITS]
    assert names == ["clear", "accept_draft", "retry", "switch_model", "give_up", "raise_budget", "close"]
    length = Question._meta.get_field("action").max_length
    assert length is not None and max(map(len, names)) <= length
