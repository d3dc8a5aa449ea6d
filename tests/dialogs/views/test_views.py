"""The pages without a browser: what they answer, to whom, and that they work with scripts switched off."""

import re
from uuid import uuid4

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from dialogs.actions import messages, questions, reminders
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Dialog, Event, Generation, Question, Reminder, Turn
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun
from tests.dialogs.browsing import HTMX, asked_dialog, browser_of, routes, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


# -- Who sees what -----------------------------------------------------------------------------------------------------


def dialog_addresses() -> list[str]:
    """Every address of ours that names something of somebody's."""
    addresses = []
    for pattern in routes():
        if pattern.name:
            names = set(pattern.pattern.converters)
            if names & {"dialog_id", "question_id"} and pattern.name != "intervene":
                addresses.append(pattern.name)
    return sorted(addresses)


def test_the_address_of_a_form_leads_to_the_page_above_it(script: Script) -> None:
    dialog, question = asked_dialog(script)
    browser = browser_of(dialog.owner)
    answer = browser.get(f"/q4h/{question.pk}/answer/", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Location"]) == (302, f"/q4h/{question.pk}/")
    assert browser.get(f"/q4h/{question.pk}/answer/").status_code == 405


def test_a_strangers_dialog_does_not_exist(script: Script) -> None:
    dialog, question = asked_dialog(script)
    reminder = reminders.add(dialog.pk, "keep")
    given = {
        "dialog_id": dialog.pk,
        "question_id": question.pk,
        "reminder_id": reminder.pk,
        "run_id": 1,
        "generation_id": 1,
        "seq": 2,
        "position": 1,
        "sha256": "0" * 64,
        "kind": "prune",
        "token": "forged",
        "side_id": dialog.pk,
    }

    def stored() -> list[object]:
        rows = (Dialog, Turn, Question, Reminder, Generation, RemediationRun, Event)
        return [list(model._default_manager.order_by("pk").values()) for model in rows]

    stranger, nobody, before = browser_of(UserFactory.create()), Client(), stored()
    for name in dialog_addresses():
        asks_for_link = name == "question-link" or name.endswith("by-mail")  # of a mail, in place of a login
        pattern = next(route for route in routes() if route.name == name)
        address = reverse(name, kwargs={key: given[key] for key in pattern.pattern.converters})
        for method in ("get", "post"):
            answer = getattr(stranger, method)(address, {"text": "x", "action": "close", "reminder_content": "x"})
            assert answer.status_code in (404, 405), f"{method} {address}"
            answer = getattr(nobody, method)(address)
            away = answer.status_code == 404 if asks_for_link else answer.get("Location", "").startswith("/login/")
            assert answer.status_code == 405 or away, f"{method} {address}"
        assert stored() == before, address


def test_staff_see_every_dialog_and_whose_it_is(script: Script) -> None:
    dialog = make_dialog()
    staff = browser_of(make_operator())
    assert dialog.owner.username in staff.get(f"/d/{dialog.pk}/").content.decode()
    for everybodys in ("?whose=all", f"?owner={dialog.owner.username}"):
        assert str(dialog.pk) in staff.get(f"/dialogs/{everybodys}").content.decode()
    assert str(dialog.pk) not in staff.get("/dialogs/").content.decode(), "one's own come first"
    assert str(dialog.pk) not in browser_of(UserFactory.create()).get("/dialogs/?whose=all").content.decode()


@pytest.mark.parametrize("path", ["/", "/dialogs/", "/q4h/", "/models/", "/settings/"])
def test_pages_ask_for_a_login_and_come_back(path: str) -> None:
    UserFactory.create(is_superuser=True)
    assert Client().get(path)["Location"] == f"/login/?next={path}"


def test_every_change_needs_a_token(script: Script) -> None:
    """A form of another site carries the cookie, but not the token. /mcp takes no cookie at all."""
    dialog = make_dialog()
    client = Client(enforce_csrf_checks=True)
    client.force_login(dialog.owner)
    for pattern in routes():
        given = {"dialog_id": dialog.pk, "question_id": uuid4(), "provider": "test", "model": "model"}
        given |= {"kind": "prune", "action": "stop", "side_id": dialog.pk}
        address = reverse(pattern.name, kwargs={key: given.get(key, 1) for key in pattern.pattern.converters})
        assert client.post(address).status_code in (403, 405, 401 if pattern.name == "mcp" else 405), address


def test_errors_have_pages_too() -> None:
    client = browser_of(UserFactory.create())
    assert "There is no such page" in client.get("/nowhere/").content.decode()
    assert "There is no such page" in Client().get("/nowhere/").content.decode()
    fields = Client().post("/login/", {f"field{number}": "" for number in range(2_000)})
    assert (fields.status_code, "That could not be read" in fields.content.decode()) == (400, True)
    strict = Client(enforce_csrf_checks=True)
    assert "Please send it again" in strict.post("/login/").content.decode()
    assert "Something failed" in render_to_string("500.html")


def test_looking_changes_nothing(script: Script) -> None:
    dialog, question = asked_dialog(script)
    before = list(Dialog.objects.values()), list(Turn.objects.values()), list(Question.objects.values())
    client = browser_of(dialog.owner)
    for name in ("stop", "retry", "close", "post-message", "add-reminder", "clear"):
        assert client.get(reverse(name, args=[dialog.pk])).status_code == 405
    for name in ("dialog", "context", "export-json", "frames", "older"):
        assert client.get(reverse(name, args=[dialog.pk])).status_code == 200
    assert client.get(f"/q4h/{question.pk}/").status_code == 200
    assert before == (list(Dialog.objects.values()), list(Turn.objects.values()), list(Question.objects.values()))


def test_no_page_carries_an_inline_script_or_style(script: Script) -> None:
    dialog, question = asked_dialog(script)
    client = browser_of(UserFactory.create(is_staff=True, is_superuser=True))
    for path in ("/", f"/d/{dialog.pk}/", f"/d/{dialog.pk}/context/", f"/q4h/{question.pk}/", "/settings/", "/models/"):
        answer = client.get(path)
        html = answer.content.decode()
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html), path
        for script_tag in re.findall(r"<script[^>]*>", html):
            assert " src=" in script_tag, path
        assert "script-src 'self'" in answer["Content-Security-Policy"]


def test_what_people_and_models_wrote_is_escaped_on_every_page(script: Script) -> None:
    """The same hostile text as title, message, answer, tool result, reminder, question and agent name (S6)."""
    hostile = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    call = {"name": ASK_HUMAN, "arguments": {"question": hostile}}
    script({"text": hostile, "tool_calls": [call]}, {"text": hostile})
    dialog = make_dialog(name=hostile[:40])
    Dialog.objects.filter(pk=dialog.pk).update(title=hostile)
    reminders.add(dialog.pk, hostile)
    send(dialog, hostile)
    question = Question.objects.get(dialog=dialog)
    staff = browser_of(make_operator())
    paths = [
        "/",
        f"/d/{dialog.pk}/",
        f"/d/{dialog.pk}/context/",
        f"/q4h/{question.pk}/",
        "/q4h/",
        f"/d/{dialog.pk}/details/",
    ]
    questions.answer(question.pk, dialog.owner, hostile)
    drive(dialog.pk)
    for path in paths:
        html = staff.get(path).content.decode()
        assert "<img" not in html, path
        assert "<script>" not in html, path


# -- Sending without scripts -------------------------------------------------------------------------------------------


def test_a_plain_form_sends_and_comes_back_to_the_page(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    answer = client.post(f"/d/{dialog.pk}/messages/", {"text": "one\r\ntwo", "client_message_id": "a"})
    assert answer["Location"] == f"/d/{dialog.pk}/#latest"
    client.post(f"/d/{dialog.pk}/messages/", {"text": "one\r\ntwo", "client_message_id": "a"})
    assert [turn.text for turn in dialog.turns.all()] == ["one\ntwo"]
    drive(dialog.pk)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "Hello." in page


def test_htmx_gets_the_pieces_that_changed(script: Script) -> None:
    dialog = make_dialog()
    answer = browser_of(dialog.owner).post(f"/d/{dialog.pk}/messages/", {"text": "<b>Hi</b>"}, headers=HTMX)
    html = answer.content.decode()
    assert 'id="turn-1"' in html
    assert "&lt;b&gt;Hi&lt;/b&gt;" in html
    assert 'id="composer-state"' in html
    assert "<html" not in html


@pytest.mark.parametrize(("text", "status"), [("", 400), ("  ", 400), ("x" * 1_000_001, 413)])
def test_a_refused_message_says_why_and_is_not_lost(script: Script, text: str, status: int) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    answer = client.post(f"/d/{dialog.pk}/messages/", {"text": text})
    assert answer.status_code == status
    assert 'role="alert"' in answer.content.decode()
    assert not text.strip() or text in answer.content.decode()
    assert client.post(f"/d/{dialog.pk}/messages/", {"text": text}, headers=HTMX).status_code == status
    assert not dialog.turns.exists()


def test_a_suspended_dialog_takes_no_message_and_says_so(script: Script) -> None:
    dialog, _ = suspended_dialog(script)
    client = browser_of(dialog.owner)
    page = in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    assert re.search(r"<textarea[^>]* disabled", page)
    assert "Suspended: context critical" in page
    assert client.post(f"/d/{dialog.pk}/messages/", {"text": "More"}).status_code == 409
    assert dialog.turns.filter(text="More").count() == 0


def test_stop_remove_and_retry_work_by_plain_forms(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    messages.post_message(dialog.pk, "first")
    queued = messages.post_message(dialog.pk, "second")
    client.post(f"/d/{dialog.pk}/messages/{queued.seq}/remove/")
    assert Turn.objects.get(dialog=dialog, seq=queued.seq).status == Turn.Status.SUPERSEDED
    client.post(f"/d/{dialog.pk}/stop/")
    assert Turn.objects.get(dialog=dialog, seq=1).status == Turn.Status.STOPPED
    assert "Retry" in client.get(f"/d/{dialog.pk}/").content.decode()
    client.post(f"/d/{dialog.pk}/retry/")
    drive(dialog.pk)
    assert Turn.objects.get(dialog=dialog, seq=1).status == Turn.Status.ANSWERED
    client.post(f"/d/{dialog.pk}/close/")
    assert Dialog.objects.get(pk=dialog.pk).state == "closed"


def test_a_dialog_that_waits_for_its_provider_says_why(script: Script) -> None:
    script({"error": {"kind": "rate_limit", "message": "Slow down.", "retry_after": 40}}, {"text": "ok"})
    dialog = make_dialog()
    send(dialog, "Hi")
    page = in_one_line(browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode())
    assert "Waiting for the provider… The provider takes no more requests just now." in page


def test_a_failure_says_why_and_how_often_it_was_tried(script: Script) -> None:
    script(*[{"error": {"kind": "timeout", "message": "The host was silent.", "retry_after": 0.01}}] * 3)
    dialog = make_dialog()
    send(dialog, "Hi")
    client = browser_of(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "The provider took too long." in page
    assert "The host was silent. Given up after 3 tries." in page
    client.cookies["django_language"] = "zh-hans"
    assert "已尝试 3 次" in client.get(f"/d/{dialog.pk}/").content.decode()


def test_a_long_dialog_comes_in_pages_upward(script: Script) -> None:
    dialog = make_dialog()
    for number in range(50):
        send(dialog, f"message {number:03}")
    client = browser_of(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "message 049" in page
    assert "message 001" not in page
    seen = set(re.findall(r"message \d{3}", page))
    while link := re.search(r'hx-get="([^"]+older[^"]+)"', page):
        page = client.get(link[1], headers=HTMX).content.decode()
        seen |= set(re.findall(r"message \d{3}", page))
    assert len(seen) == 50


# -- The list ----------------------------------------------------------------------------------------------------------


def test_the_list_finds_words_in_titles_and_messages(script: Script) -> None:
    dialog = make_dialog()
    other = messages.create_dialog(dialog.owner, dialog.agent_id, "Harbour dues")
    send(dialog, "Where is the LIGHTHOUSE?")
    client = browser_of(dialog.owner)

    def listed(**query: str) -> set[str]:
        html = client.get("/dialogs/", query, headers={**HTMX, "HX-Target": "dialog-rows"}).content.decode()
        assert "<html" not in html
        return {str(row.pk) for row in (dialog, other) if str(row.pk) in html}

    assert listed(q="lighthouse") == {str(dialog.pk)}
    assert listed(q="harbour") == {str(other.pk)}
    assert listed(q="nowhere") == set()
    assert listed(state="closed") == set()
    assert listed(agent=dialog.agent_id) == {str(dialog.pk), str(other.pk)}
    assert listed(q="'; --%_") == set()


def test_nobody_finds_words_of_somebody_else(script: Script) -> None:
    dialog = make_dialog()
    messages.post_message(dialog.pk, "secret lighthouse")
    assert str(dialog.pk) not in browser_of(UserFactory.create()).get("/dialogs/?q=lighthouse").content.decode()
