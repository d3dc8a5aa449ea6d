"""Q4H without a browser: answers from the inbox and the composer, and the exits."""

import re

import pytest
from django.contrib.auth.models import Group, Permission

from dialogs.actions import questions
from dialogs.actions.messages import create_dialog
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.browsing import HTMX, asked_dialog, browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_answer_from_the_inbox_lets_the_run_go_on(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    assert "EUR or USD?" in client.get("/q4h/").content.decode()
    assert 'Needs you <span class="badge-count">1</span>' in in_one_line(client.get("/settings/").content.decode())
    others = UserFactory.create(), make_operator(), UserFactory.create()
    dialog.group = Group.objects.create(name="importers")
    dialog.save()
    others[2].groups.add(dialog.group)
    assert [questions.count_open(one) for one in others] == [0, 1, 1], "a stranger, an operator, a member of its group"
    place = f"question-{question.pk}"
    assert f'href="/d/{dialog.pk}/#{place}"' in client.get(f"/q4h/{question.pk}/").content.decode()
    assert f'id="{place}"' in client.get(f"/d/{dialog.pk}/").content.decode()
    client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR"})
    assert questions.count_open(dialog.owner) == 0
    drive(dialog.pk)
    assert dialog.turns.filter(text="Thanks.").exists()
    assert "EUR or USD?" in client.get("/q4h/?tab=answered").content.decode()


def test_an_answer_from_the_composer_brings_pieces_not_a_page(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    html = client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR", "from": "dialog"}, headers=HTMX).content.decode()
    assert 'id="composer-state"' in html
    assert "<html" not in html
    answer = client.post(f"/q4h/{question.pk}/answer/", {"text": "USD"}, headers=HTMX)
    assert answer.status_code == 409
    assert "answered by" in answer["HX-Trigger"]


def test_who_comes_second_learns_who_was_first(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR"})
    answer = client.post(f"/q4h/{question.pk}/answer/", {"text": "USD"})
    assert answer.status_code == 409
    assert dialog.owner.username in answer.content.decode()
    assert questions.questions_of(dialog.owner).get().answer == "EUR"


def test_the_way_to_room_in_a_suspended_dialog_is_its_question(script: Script) -> None:
    dialog, question = suspended_dialog(script)
    room = browser_of(dialog.owner).get(f"/d/{dialog.pk}/context/").content.decode().partition('id="room"')[2]
    assert f'href="/q4h/{question.pk}/">All ways out…</a>' in room and "Not while the dialog waits" not in room


def test_a_critical_question_offers_five_exits_and_no_answer(script: Script) -> None:
    dialog, question = suspended_dialog(script)
    owner, staff = browser_of(dialog.owner), browser_of(make_operator())
    page = owner.get(f"/q4h/{question.pk}/").content.decode()
    assert "/answer/" not in page
    assert "/resolve/" not in page
    assert owner.post(f"/q4h/{question.pk}/answer/", {"text": "x"}).status_code == 409
    assert owner.post(f"/q4h/{question.pk}/resolve/", {"action": "close"}).status_code == 409
    assert set(
        re.findall(r'name="action" value="(\w+)"', in_one_line(staff.get(f"/q4h/{question.pk}/").content.decode()))
    ) >= {
        "clear",
        "accept_draft",
        "retry",
        "close",
    }
    dialog.owner.user_permissions.add(Permission.objects.get(codename="resolve_question"))
    assert "/resolve/" in owner.get(f"/q4h/{question.pk}/").content.decode()


@pytest.mark.parametrize(
    ("form", "state", "way"),
    [
        ({"action": "clear", "reminder_content": "Goal: go on"}, "queued", "Clear with this hand-over note"),
        ({"action": "accept_draft"}, "queued", "Accept the drafted hand-over note"),
        ({"action": "retry"}, "queued", "Try again"),
        ({"action": "close"}, "closed", "Close the dialog"),
    ],
)
def test_each_exit_ends_the_suspension(script: Script, form: dict[str, str], state: str, way: str) -> None:
    dialog, question = suspended_dialog(script)
    staff = browser_of(make_operator())
    answer = staff.post(f"/q4h/{question.pk}/resolve/", form)
    assert answer.status_code == 302
    assert Dialog.objects.get(pk=dialog.pk).state == state
    assert f"<strong>{way}</strong>." in staff.get(f"/q4h/{question.pk}/").content.decode()


@pytest.mark.parametrize("form", [{}, {"action": "dance"}, {"action": "clear", "reminder_content": "  "}])
def test_an_exit_without_what_it_needs_changes_nothing(script: Script, form: dict[str, str]) -> None:
    dialog, question = suspended_dialog(script)
    staff = browser_of(make_operator())
    assert staff.post(f"/q4h/{question.pk}/resolve/", form).status_code == 400
    assert Dialog.objects.get(pk=dialog.pk).state == "suspended"


def test_an_answer_is_a_turn_that_links_its_question(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(dialog.owner)
    asking = dialog.turns.get(role="assistant")
    assert "EUR or USD?" in _turn(client.get(f"/d/{dialog.pk}/").content.decode(), asking.seq)
    colleague = make_operator()
    questions.answer(question.pk, colleague, "Euro, please")
    drive(dialog.pk)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    answer = _turn(page, dialog.turns.get(role="tool").seq)
    assert "Euro, please" in answer
    assert colleague.username in answer
    assert "<time" in answer
    assert f'href="/d/{dialog.pk}/#turn-{asking.seq}"' in answer
    assert "chars" not in answer
    assert "EUR or USD?" in _turn(page, asking.seq)


def test_a_cancelled_question_says_who_left_it_to_the_agent(script: Script) -> None:
    dialog, question = asked_dialog(script)
    questions.cancel(question.pk, dialog.owner)
    drive(dialog.pk)
    page = browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode()
    answer = _turn(page, dialog.turns.get(role="tool").seq)
    assert "You" in answer
    assert "Cancelled a question" in answer
    assert "[The person cancelled" not in answer


def _turn(page: str, seq: int) -> str:
    match = re.search(rf'<article[^>]*id="turn-{seq}".*?</article>', page, re.S)
    assert match is not None
    return match[0]


def test_the_inbox_goes_on_with_the_next_question(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client, piece = browser_of(dialog.owner), {**HTMX, "HX-Target": "reader"}
    html = in_one_line(client.get(f"/q4h/?at={question.pk}").content.decode())
    assert f'action="/q4h/{question.pk}/answer/"' in html
    assert re.search(rf'data-row="{question.pk}" aria-current="true"', html)
    assert "autofocus" not in html, "keys move through the list first"
    reader = client.get(f"/q4h/{question.pk}/", headers=piece).content.decode()
    assert "<html" not in reader
    assert "EUR or USD?" in reader
    answer = client.post(f"/q4h/{question.pk}/answer/", {"text": "EUR", "from": "inbox"})
    assert answer["Location"] == "/q4h/"
    assert client.get(f"/q4h/?at={question.pk}").status_code == 200, "it is no longer in this tab"


def test_exits_that_ask_for_nothing_are_buttons_in_the_dialog(script: Script) -> None:
    dialog, question = suspended_dialog(script)
    owner, staff = browser_of(dialog.owner), browser_of(make_operator())
    exit_button = re.compile(r'name="action" value="(?!archive|delete)(\w+)"')  # those two are the menu's
    assert not exit_button.findall(in_one_line(owner.get(f"/d/{dialog.pk}/").content.decode())), (
        "the owner may not resolve it"
    )
    buttons = exit_button.findall(in_one_line(staff.get(f"/d/{dialog.pk}/").content.decode()))
    assert buttons == ["accept_draft", "retry"], "closing takes a second thought, clearing a text"
    html = staff.post(
        f"/q4h/{question.pk}/resolve/", {"action": "retry", "from": "dialog"}, headers=HTMX
    ).content.decode()
    assert 'id="banner"' in html and not exit_button.findall(html)


def test_offered_answers_are_buttons_while_the_question_is_open(script: Script) -> None:
    offers = {"question": "EUR or USD?", "choices": ["EUR", " USD", "EUR", " "]}
    script({"tool_calls": [{"name": questions.ASK_HUMAN, "arguments": offers}]}, {"text": "Thanks."})
    dialog = make_dialog()
    send(dialog, "Import it")
    client, (question,) = browser_of(dialog.owner), dialog.questions.all()
    assert question.choices == ["EUR", "USD"]
    button = '<button class="button" name="text" value="USD">'
    pages = (f"/d/{dialog.pk}/", f"/q4h/{question.pk}/", "/q4h/")
    assert all(in_one_line(client.get(page).content.decode()).count(button) == 1 for page in pages)
    client.post(f"/q4h/{question.pk}/answer/", {"text": "USD", "from": "dialog"}, headers=HTMX)
    assert not any(button in in_one_line(client.get(page).content.decode()) for page in pages)


def test_an_agents_question_is_shown_as_its_answers_are(script: Script) -> None:
    asks = {"question": "Pay in **EUR**?\n<img src=x onerror=alert(1)>"}
    script({"tool_calls": [{"name": questions.ASK_HUMAN, "arguments": asks}]}, {"text": "Thanks."})
    dialog = make_dialog()
    send(dialog, "Import it")
    client, (question,) = browser_of(dialog.owner), dialog.questions.all()
    for page in (f"/d/{dialog.pk}/", f"/q4h/{question.pk}/", "/q4h/"):
        html = client.get(page).content.decode()
        assert "Pay in <strong>EUR</strong>?" in html and "<img src=x" not in html, page
    other = {"text": "Pay in **EUR**?", "dialog": str(create_dialog(dialog.owner, dialog.agent).pk)}
    asked = client.post("/api/questions", other, content_type="application/json").json()["id"]
    assert "Pay in **EUR**?" in client.get(f"/q4h/{asked}/").content.decode(), "as a program sent it"


def test_a_program_elsewhere_may_offer_answers(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    asked = {"text": "EUR or USD?", "dialog": str(dialog.pk), "choices": ["EUR", "USD"]}
    answer = client.post("/api/questions", asked, content_type="application/json")
    assert answer.status_code == 201 and answer.json()["choices"] == ["EUR", "USD"]
    assert 'value="EUR">' in in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    refused = client.post("/api/questions", {**asked, "choices": ["x"] * 9}, content_type="application/json")
    assert refused.status_code in (400, 422)
