"""The menu of a turn, what its buttons do, and the way from one version to another. No browser."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.actions import messages
from dialogs.actions.expiry import remove_expired
from dialogs.models import Dialog, RecallChoice
from dialogs.runtime.driver import drive
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script({"text": "**Yes.**", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    dialog = make_dialog()
    for text in ("one", "two"):
        send(dialog, text)
    return dialog


@pytest.fixture
def person(dialog: Dialog) -> Client:
    return browser_of(dialog.owner)


def page_of(person: Client, dialog: Dialog) -> str:
    return in_one_line(person.get(f"/d/{dialog.pk}/").content.decode())


def test_a_turn_of_another_day_says_the_day(person: Client, dialog: Dialog) -> None:
    a_year_ago = timezone.now() - timedelta(days=365)
    dialog.turns.filter(seq=1).update(created_at=a_year_ago)
    shown = re.findall(r'data-form="time" title="[^"]+">([^<]+)</time>', page_of(person, dialog))
    assert [f"{a_year_ago:%Y}" in time for time in shown[:2]] == [True, False]


def menu_of(person: Client, dialog: Dialog, seq: int) -> str:
    return in_one_line(person.get(f"/d/{dialog.pk}/turn/{seq}/actions/", headers=HTMX).content.decode())


def test_each_turn_has_one_way_to_its_actions(person: Client, dialog: Dialog) -> None:
    page = page_of(person, dialog)
    assert page.count("data-turn-menu") == 4
    assert f'data-copy-text="/d/{dialog.pk}/turn/2/?text" aria-label="Copy message"' in page, "as Markdown"
    asked, answer = menu_of(person, dialog, 1), menu_of(person, dialog, 2)
    assert "Edit…" in asked and "Regenerate" not in asked and ">one</textarea>" in asked
    assert "Regenerate with another model" in answer and "Edit…" not in answer
    assert "50 prompt / 5 completion" in answer and "What it saw" in answer and "Good answer" in answer
    assert all("Fork to a new dialog" in menu and "Pin" in menu for menu in (asked, answer))
    whole = in_one_line(person.get(f"/d/{dialog.pk}/turn/2/actions/").content.decode())
    assert (
        "<!doctype html>" in whole.lower()
        and whole.count('name="request_id"') == answer.count('name="request_id"') == 3
    )
    assert in_one_line(person.get(f"/d/{dialog.pk}/turn/2/?text").content.decode()) == "**Yes.**"
    assert person.get(f"/d/{dialog.pk}/turn/9/actions/").status_code == 404


def test_versions_lead_to_each_other_at_the_place_where_they_part(person: Client, dialog: Dialog) -> None:
    answer = person.post(f"/d/{dialog.pk}/edit/", {"seq": 3, "text": "two again", "request_id": "r"})
    made = Dialog.objects.get(forked_from=dialog)
    assert answer.headers["Location"] == f"/d/{made.pk}/at/3/"
    assert person.get(f"/d/{made.pk}/at/3/").headers["Location"] == f"/d/{made.pk}/#turn-3"
    assert person.get(f"/d/{made.pk}/at/9/").headers["Location"] == f"/d/{made.pk}/#latest"
    drive(made.pk)
    here, there = page_of(person, made), page_of(person, dialog)
    assert "<span>2/2</span>" in here and f'href="/d/{dialog.pk}/at/3/" aria-label="Previous version"' in here
    assert "<span>1/2</span>" in there and f'href="/d/{made.pk}/at/3/" aria-label="Next version"' in there
    assert here.count('aria-label="Versions"') == 1 and "Branches off" in here and "Branches off" not in there
    assert "data-turn-menu" in here and "one" in here and "two again" in here


def test_versions_are_shown_where_another_version_shares_the_turn(person: Client, dialog: Dialog) -> None:
    person.post(f"/d/{dialog.pk}/edit/", {"seq": 3, "text": "two again"})
    made = Dialog.objects.get(forked_from=dialog)
    drive(made.pk)
    person.post(
        f"/d/{made.pk}/regenerate/",
        {
            "seq": 2,
        },
    )
    newest = Dialog.objects.exclude(pk__in=[dialog.pk, made.pk]).get()
    drive(newest.pk)
    assert newest.forked_from == dialog and newest.own_from == 2
    page = page_of(person, made)
    assert page.count('aria-label="Versions"') == 2, "at the answer that was given anew, and at the message worded anew"
    assert f'href="/d/{newest.pk}/at/2/" aria-label="Next version"' in page
    assert page_of(person, newest).count('aria-label="Versions"') == 1
    strangers = browser_of(make_operator())
    assert in_one_line(strangers.get(f"/d/{made.pk}/").content.decode()).count('aria-label="Versions"') == 2


def test_a_hidden_branch_is_no_version(dialog: Dialog) -> None:
    operator = make_operator()
    browser_of(operator).post(f"/d/{dialog.pk}/regenerate/", {"seq": 4, "request_id": "r"})
    made = Dialog.objects.get(forked_from=dialog)
    drive(made.pk)
    assert made.owner == operator
    assert 'aria-label="Versions"' not in page_of(browser_of(dialog.owner), dialog)
    assert 'aria-label="Versions"' in page_of(browser_of(operator), dialog)


def test_a_branch_outlives_the_dialog_that_it_left(person: Client, dialog: Dialog) -> None:
    person.post(f"/d/{dialog.pk}/edit/", {"seq": 3, "text": "two again"})
    made = Dialog.objects.get(forked_from=dialog)
    drive(made.pk)
    Dialog.objects.filter(pk=dialog.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert remove_expired() == 1
    page = page_of(person, made)
    assert "Branches off another dialog" in page and 'aria-label="Versions"' not in page
    assert "usage" not in menu_of(person, made, 2).split("Pin")[1]
    send(made, "three")
    assert made.turns.count() == 6


def test_a_double_click_makes_one_dialog_and_htmx_is_led_there(person: Client, dialog: Dialog) -> None:
    for way, given in (("fork", {}), ("regenerate", {"model": ""}), ("edit", {"text": "two again"})):
        seq = 3 if way == "edit" else 4
        answers = [
            person.post(f"/d/{dialog.pk}/{way}/", {**given, "seq": seq, "request_id": "same"}, headers=HTMX)
            for _ in range(2)
        ]
        assert len({answer.headers["HX-Redirect"] for answer in answers}) == 1
    assert Dialog.objects.filter(forked_from=dialog).count() == 3


def test_refusals_are_sentences_and_keep_the_words(person: Client, dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "three")
    assert "An answer is under way" in menu_of(person, dialog, 1)
    toast = person.post(f"/d/{dialog.pk}/fork/", {"seq": 2}, headers=HTMX)
    assert toast.status_code == 409 and "when it has finished" in toast.headers["HX-Trigger"]
    assert "when it has finished" in in_one_line(
        person.post(f"/d/{dialog.pk}/fork/", {"seq": 2}, follow=True).content.decode()
    )
    drive(dialog.pk)
    blank = person.post(f"/d/{dialog.pk}/edit/", {"seq": 2, "text": "my new words"})
    assert blank.status_code == 409 and "is no message of a person" in in_one_line(blank.content.decode())
    unknown = person.post(f"/d/{dialog.pk}/regenerate/", {"seq": 4, "model": "no/such"}, headers=HTMX)
    assert unknown.status_code == 409
    empty = person.post(f"/d/{dialog.pk}/edit/", {"seq": 1, "text": " "})
    assert empty.status_code == 400 and "The message is empty" in in_one_line(empty.content.decode())
    assert Dialog.objects.count() == 1


def test_only_who_may_act_branches_rates_and_pins(dialog: Dialog) -> None:
    stranger, reader = browser_of(UserFactory.create()), UserFactory.create()
    reader.user_permissions.add(*make_operator().user_permissions.filter(codename="view_all_dialogs"))
    ways = {
        "fork": {},
        "regenerate": {},
        "edit": {"text": "x"},
        "feedback": {"feedback": "up"},
        "pin-turn": {"choice": "pinned"},
    }
    for way, wanted in ways.items():
        address, given = f"/d/{dialog.pk}/{way}/", {**wanted, "seq": "1" if way == "edit" else "2"}
        assert stranger.post(address, given, headers=HTMX).status_code == 404
        assert browser_of(reader).post(address, given, headers=HTMX).status_code == 403
        assert browser_of(dialog.owner).get(address).status_code == 405
        assert Client(enforce_csrf_checks=True).post(address, given).status_code in (302, 403)
    assert Dialog.objects.count() == 1 and not RecallChoice.objects.exists()
    assert not dialog.turns.exclude(liked=None).exists()
    menu = menu_of(browser_of(reader), dialog, 2)
    assert "<form" not in menu and "Copy as Markdown" in menu


def test_an_answer_is_rated_and_the_page_shows_it(person: Client, dialog: Dialog) -> None:
    address = f"/d/{dialog.pk}/feedback/"
    for given, liked, word in (("up", True, "Good answer"), ("down", False, "Poor answer"), ("", None, "")):
        piece = in_one_line(person.post(address, {"seq": 2, "feedback": given}, headers=HTMX).content.decode())
        assert 'id="turn-2"' in piece and dialog.turns.get(seq=2).liked is liked
        assert re.findall(r'class="sr-only">(\w+ answer)', page_of(person, dialog)) == ([word] if word else [])
    assert person.post(address, {"seq": 2, "feedback": "loved"}, headers=HTMX).status_code == 400
    assert person.post(f"/d/{dialog.pk}/feedback/", {"seq": 1, "feedback": "up"}, headers=HTMX).status_code == 404


def test_a_turn_is_pinned_from_its_menu(person: Client, dialog: Dialog) -> None:
    address = f"/d/{dialog.pk}/pin-turn/"
    assert "Pinned" in person.post(address, {"seq": 1, "choice": "pinned"}, headers=HTMX).headers["HX-Trigger"]
    assert RecallChoice.objects.get(dialog=dialog).seq == 1 and "Unpin" in menu_of(person, dialog, 1)
    assert "Pin: recall" in in_one_line(person.post(address, {"seq": 1, "choice": ""}, follow=True).content.decode())
    assert not RecallChoice.objects.exists()


def test_usage_of_a_copied_answer_stands_where_it_was_given(person: Client, dialog: Dialog) -> None:
    person.post(f"/d/{dialog.pk}/fork/", {"seq": 4})
    made = Dialog.objects.get(forked_from=dialog)
    assert f'href="/d/{made.pk}/turn/2/usage/"' in menu_of(person, made, 2)
    answer = person.get(f"/d/{made.pk}/turn/2/usage/")
    assert answer.headers["Location"] == f"/d/{dialog.pk}/turn/2/usage/"


def test_a_long_message_folds_and_a_running_tool_shows_its_time(person: Client, dialog: Dialog) -> None:
    send(dialog, "\n".join(f"line {number}" for number in range(40)))
    page = page_of(person, dialog)
    assert page.count("body plain folded") == 1 and "Show all 309 characters" in page
    assert "data-since=" not in page
    dialog.turns.filter(seq=2).update(tool_calls=[{"id": "c1", "name": "slow", "arguments": "{}"}])
    since = re.search(r'class="elapsed" data-since="([^"]+)"', page_of(person, dialog))
    assert since and since[1] == dialog.turns.get(seq=2).created_at.isoformat()
    later = timezone.now()
    dialog.questions.create(kind="question", approves="slow", tool_call_id="c1", state="answered", resolved_at=later)
    assert f'data-since="{later.isoformat()}"' in page_of(person, dialog), "it waited for a person, and did not run"
