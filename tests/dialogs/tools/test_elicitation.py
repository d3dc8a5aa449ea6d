"""What a tool server asks in the middle of a call is a question for a person, and their answer goes to the server."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.actions import questions
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from dialogs.tools.elicitation import Asking, content_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send
from tests.dialogs.tools.approving import answer, open_question, results
from tests.dialogs.tools.conftest import Minds

ODD = Path(__file__).with_name("odd_mcp_server.py")
ASKS = {"tool_calls": [{"name": "odd_asks", "arguments": {}}]}
FIELDS: dict[str, Any] = {
    "city": {"type": "string"},
    "nights": {"type": "integer", "minimum": 1},
    "price": {"type": "number"},
    "sea_view": {"type": "boolean"},
    "board": {"type": "string", "enum": ["half", "full"], "enumNames": ["Half board", "Full board"]},
    "room": {"type": "string", "oneOf": [{"const": "s", "title": "Single"}, {"const": "d", "title": "Double"}]},
    "extras": {"type": "array", "items": {"type": "string", "enum": ["boat", "car"]}},
    "currency": {"type": "string", "default": "EUR"},
}


def form(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: FIELDS[name] for name in names}, "required": list(names), **more}


@pytest.mark.unit
@pytest.mark.parametrize(
    ("names", "said", "content"),
    [
        (["city"], " Rome ", {"city": "Rome"}),
        (["nights"], "3", {"nights": 3}),
        (["price"], "9.5", {"price": 9.5}),
        (["sea_view"], "Yes", {"sea_view": True}),
        (["board"], "full board", {"board": "full"}),
        (["room"], "Double", {"room": "d"}),
        (["extras"], "boat, car", {"extras": ["boat", "car"]}),
        (["city", "nights"], "city: Rome\nnights: 3", {"city": "Rome", "nights": 3}),
        (["city", "nights"], '{"city": "Rome", "nights": 3}', {"city": "Rome", "nights": 3}),
        (["city", "currency"], "city = Rome", {"city": "Rome", "currency": "EUR"}),
    ],
)
def test_a_persons_words_become_the_fields_of_a_form(names: list[str], said: str, content: dict[str, Any]) -> None:
    assert content_of(form(*names), said) == content


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "said"), [("nights", "many"), ("nights", "0"), ("price", "nan"), ("board", "none"), ("extras", "yacht")]
)
def test_words_that_do_not_fit_are_refused(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        content_of(form(name), said)


@pytest.mark.unit
@given(said=st.text(max_size=40), names=st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=3))
def test_any_words_fit_or_are_refused(said: str, names: list[str]) -> None:
    with suppress(ValueError):
        assert isinstance(content_of(form(*names), said), dict)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("schema", "choices", "said", "action"),
    [
        (form(), ("Yes", "No"), "yes", "accept"),
        (form(), ("Yes", "No"), "No", "decline"),
        (form("board"), ("Half board", "Full board"), "Half board", "accept"),
        (form("sea_view"), ("Yes", "No"), "no", "accept"),
        (None, ("Done", "No"), "Done", "accept"),
    ],
)
def test_a_call_is_cancelled_until_a_person_has_answered(schema: Any, choices: Any, said: str, action: str) -> None:
    from mcp.types import ElicitRequestFormParams, ElicitRequestURLParams

    params: Any = ElicitRequestURLParams(message="Pay.", url="https://example.org/pay", elicitation_id="e")
    if schema is not None:
        params = ElicitRequestFormParams(message="Which one?", requested_schema=schema)
    first = Asking("inn", "book")
    assert first.respond(params).action == "cancel"
    assert first.open and first.open.choices == choices
    again = Asking("inn", "book", {first.open.text: said})
    assert (again.respond(params).action, again.open) == (action, None)


# In a dialog


@pytest.fixture
def guest(minds: Minds, script: Script, tmp_path: Path) -> Callable[[], Dialog]:
    script({"match": "book", **ASKS}, {"text": "Booked."})

    def send_one() -> Dialog:
        minds(odd={"command": sys.executable, "args": [str(ODD), str(tmp_path / "notes")]})
        dialog = make_dialog(tools=["mcp:odd"])
        send(dialog, "book")
        return dialog

    return send_one


@pytest.mark.django_db(transaction=True)
def test_a_person_answers_a_server_and_the_call_goes_on(guest: Callable[[], Dialog]) -> None:
    dialog = guest()
    question = open_question(dialog)
    assert question.text.startswith("The tool server odd asks, for asks: Which one?") and question.tool == "odd_asks"
    answer(dialog, "lake side")
    assert (dialog.state, results(dialog)) == ("idle", [("ok", '{"region":"lake side"}')])
    send(dialog, "book")
    assert open_question(dialog).pk != question.pk, "another call is asked about anew"


@pytest.mark.django_db(transaction=True)
def test_a_question_of_a_server_that_is_cancelled_ends_its_call(guest: Callable[[], Dialog]) -> None:
    dialog = guest()
    questions.cancel(open_question(dialog).pk, dialog.owner)
    drive(dialog.pk)
    dialog.refresh_from_db()
    ((status, text),) = results(dialog)
    assert (dialog.state, status) == ("idle", "error") and "cancelled the question" in text
