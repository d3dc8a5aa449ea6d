"""The request of any call, the timeline and the comparison, as pages and as JSON."""

import re
from typing import Any

import pytest

from dialogs.actions import reminders, rewrite_requests
from dialogs.actions.messages import post_message
from dialogs.context.sent import Sent
from dialogs.models import Dialog, Generation, Question
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.story import marks_of
from dialogs.queries.moments import MOST, moments
from dialogs.queries.sent_requests import next_request, sent_request
from dialogs.runtime.driver import drive
from dialogs.templatetags.pages import changed_lines, spans
from tests.dialogs.api.caller import Caller
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)

USAGE = {"prompt_tokens": 4_321, "completion_tokens": 7}


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script({"text": "Understood <b>well</b>.", "usage": USAGE})
    dialog = send(make_dialog(instructions="Be brief."), "first", "second")
    reminders.add(dialog.pk, "Mind the gap")
    rewrite_requests.clear(dialog.pk, "Goal: go on.", dialog.owner)
    send(dialog, "third")
    return dialog


def page(dialog: Dialog, path: str) -> str:
    answer = browser_of(dialog.owner).get(f"/d/{dialog.pk}/{path}")
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_a_call_shows_its_request_by_category_and_in_order(dialog: Dialog) -> None:
    newest = dialog.generations.latest("pk")
    html = page(dialog, f"context/?at={newest.pk}")
    assert "Equal to what was sent, byte for byte." in html
    order = [html.index(text) for text in ("Be brief.", "Goal: go on.", "third", "Mind the gap")]
    assert order == sorted(order)
    assert "4,321 tokens reported" in html and "summary and ledger" in html and "reminders" in html
    assert "<code>clear_mind</code>" in html and "Keep a text in sight" in html, "what each tool does, in words"


def test_the_text_of_an_answer_is_text(dialog: Dialog) -> None:
    second = dialog.generations.order_by("pk")[1]
    assert "Understood &lt;b&gt;well&lt;/b&gt;." in page(dialog, f"context/?at={second.pk}")


def test_what_cannot_be_made_again_says_so(dialog: Dialog) -> None:
    newest = dialog.generations.latest("pk")
    Generation.objects.filter(pk=newest.pk).update(sent=None)
    assert "Cannot be made again: this call was made before" in page(dialog, f"context/?at={newest.pk}")
    second = dialog.generations.order_by("pk")[1]
    dialog.turns.filter(seq=1).update(text="another")
    assert "Differs from what was sent: a row" in page(dialog, f"context/?at={second.pk}")


def test_each_request_is_a_column_and_what_changed_it_a_mark(dialog: Dialog) -> None:
    Question.objects.create(dialog=dialog, kind=Question.Kind.QUESTION, text="Which one?")
    html = page(dialog, f"context/?at={dialog.generations.latest('pk').pk}")
    assert html.count('class="whole-column"') == 4, "three calls, and what would be sent now"
    assert ">tokens</text>" in html and ">6k</text>" in html and ">0</text>" in html
    assert 'data-kind="instructions"' in html and "round 2 began" in html and "Question for a human" in html
    (first, *_, last) = shown = moments(dialog)
    assert sum(last.shares.values()) == last.tokens == 4_321 and last.is_reported
    marks = marks_of(DialogPage(dialog, dialog.owner), shown)
    assert [mark.kind for mark in marks[last.key]] == ["round", "question"] and marks[first.key] == []


def test_calls_are_counted_within_their_dialog(dialog: Dialog, script: Script) -> None:
    script({"text": "Noted."})
    other = send(make_dialog(), "one", "two")
    first, second = other.generations.order_by("pk")
    assert first.pk > dialog.generations.latest("pk").pk, "ids count those of all dialogs"
    html = page(other, f"context/?at={second.pk}&with={first.pk}")
    assert "Call 2, kept" in html and "From call 1 to call 2" in html and "Call 1, kept: " in html
    assert f'href="/d/{other.pk}/context/?at={second.pk}"' in html
    assert re.findall(r"(\d+) ·\s+reply", html) == ["2", "1"]
    assert "Call 1, kept" in page(other, f"context/?at={first.pk}&before={first.pk}"), "among others or alone"


def test_the_story_tells_sizes_also_beside_older_requests(dialog: Dialog) -> None:
    html = page(dialog, f"context/?before={dialog.generations.latest('pk').pk}")
    assert 'class="sizes">4,321 → 4,321 tokens<' in html.partition('id="story"')[2]


def test_the_next_request_is_shown_before_it_is_sent(dialog: Dialog) -> None:
    post_message(dialog.pk, "fourth")
    html, told = page(dialog, "context/"), next_request(Dialog.objects.get(pk=dialog.pk))
    assert "What it would see now" in html and "fourth" in html and "Mind the gap" in html
    drive(dialog.pk)
    sent = dialog.generations.latest("pk")
    assert told == sent_request(sent).pieces


def test_a_mark_leads_to_what_went_and_undoes_it_there(script: Script) -> None:
    script({"text": "Understood. " * 200}, context_length=9_000)
    dialog = send(make_dialog(context_policy="summarize"), *("one", "two", "three", "four", "five", "six", "seven"))
    rewrite_requests.request(dialog.pk, "summarize", dialog.owner)
    drive(dialog.pk)
    send(dialog, "eight")
    run, call = dialog.remediations.get(), dialog.generations.filter(purpose="reply").latest("pk")
    html = page(dialog, f"context/?at={call.pk}")
    moment = html[html.index('id="moment"') : html.index('id="room"')]
    assert f'href="/d/{dialog.pk}/archive/{run.pk}/"' in moment and ">Undo</button>" in moment
    assert f"est. {run.est_before:,} → {run.est_after:,} tokens" in moment
    answer = browser_of(dialog.owner).post(
        f"/d/{dialog.pk}/archive/{run.pk}/undo/",
        headers={"Referer": f"/d/{dialog.pk}/context/?at={call.pk}"},
        follow=True,
    )
    assert answer.redirect_chain[-1][0] == f"/d/{dialog.pk}/context/?at={call.pk}"
    assert "messages are back." in answer.content.decode()


def test_a_long_piece_opens_whole(script: Script) -> None:
    script({"text": "Read."}, context_length=100_000)
    dialog = send(make_dialog(), "A long message. " * 900)
    browser, call = browser_of(dialog.owner), dialog.generations.latest("pk")
    html = browser.get(f"/d/{dialog.pk}/context/?at={call.pk}").content.decode()
    (address,) = re.findall(r'href="(/d/[^"]*/context/text/[^"]*)"', html)
    whole = browser.get(address.replace("&amp;", "&"))
    assert whole["Content-Type"].startswith("text/plain") and whole.content.decode() == "A long message. " * 900
    assert browser.get(f"/d/{dialog.pk}/context/text/?at={call.pk}&piece=999").status_code == 404


def test_former_addresses_lead_to_the_moment(dialog: Dialog) -> None:
    browser, (first, second, _third) = browser_of(dialog.owner), dialog.generations.order_by("pk")
    here = f"/d/{dialog.pk}/"
    for former, now in (
        ("timeline/?before=9", "context/?before=9"),
        (f"calls/{second.pk}/", f"context/?at={second.pk}"),
        (f"calls/{second.pk}/compare/?with={first.pk}", f"context/?with={first.pk}&at={second.pk}"),
    ):
        assert browser.get(here + former)["Location"] == here + now


def test_a_timeline_is_bounded_and_goes_back_page_by_page(dialog: Dialog) -> None:
    newest = dialog.generations.latest("pk")
    rows = [
        Generation(
            dialog=dialog,
            round_number=2,
            purpose="reply",
            outcome="crashed" if number == MOST else "kept",
            epoch=1,
            provider=newest.provider,
            model=newest.model,
            base="2:0",
            prompt_tokens=number,
            sent=newest.sent,
        )
        for number in range(1, MOST + 1)
    ]
    Generation.objects.bulk_create(rows)
    html = page(dialog, "context/")
    assert html.count('class="whole-column"') == MOST + 1 and "Its worker was lost" in html and "Older" in html
    earlier = page(dialog, f"context/?before={dialog.generations.order_by('-pk')[MOST - 1].pk}")
    assert earlier.count('class="whole-column"') == 3 and "Newest" in earlier
    for odd in ("x", "-1", "9" * 40, ""):
        assert "whole-column" in page(dialog, f"context/?before={odd}")


def test_two_requests_beside_each_other(dialog: Dialog) -> None:
    first, second, third = dialog.generations.order_by("pk")
    html = page(dialog, f"context/?at={second.pk}&with={first.pk}")
    assert "alike" in html and "+ only in call 2" in html and "only in call 1" not in html
    html = page(dialog, f"context/?at={second.pk}&with={third.pk}")
    assert "− only in call 2" in html and "Goal: go on." in html
    assert browser_of(dialog.owner).get(f"/d/{dialog.pk}/context/?at={second.pk}&with=x").status_code == 404
    assert "+ only in the next request" in page(dialog, f"context/?at={third.pk}&with=next")


def test_a_comparison_shows_lines_without_their_numbers() -> None:
    lines = ("@@ -1,2 +1,2 @@", "-a <b>", "+@@", "@@ -9 +9 @@", " c")
    assert changed_lines(lines) == "<del>-a &lt;b&gt;</del>\n<ins>+@@</ins>\n…\n c\n"


def test_turns_that_follow_each_other_are_written_as_spans() -> None:
    assert [spans(turns) for turns in ([], [4], [1, 2, 3, 7, 9, 10])] == ["", "4", "1–3, 7, 9–10"]
    assert spans(range(1, 30, 2)) == "1, 3, 5, 7, 9, 11…"


def test_programs_read_the_same(dialog: Dialog) -> None:
    caller, (first, second, third) = Caller(dialog.owner), dialog.generations.order_by("pk")
    path = f"/dialogs/{dialog.pk}/generations/{third.pk}"
    request = caller.get(f"{path}/request")
    assert (request["is_equal"], request["differs"], request["more"]) == (True, None, False)
    assert (
        request["call"]["digest"] == Sent.of(third.sent).digest and sum(request["call"]["est_shares"].values()) == 4_321
    )
    assert [piece["text"] for piece in request["pieces"] if piece["category"] == "messages"] == ["third"]
    assert caller.get(f"{path}/request?after=1&limit=2")["pieces"] == request["pieces"][1:3]
    timeline = caller.get(f"/dialogs/{dialog.pk}/timeline")
    assert [moment["generation"] for moment in timeline] == [first.pk, second.pk, third.pk]
    assert timeline[-1]["marks"] == [{"kind": "round", "text": "Cleared by a person"}]
    assert len(caller.get(f"/dialogs/{dialog.pk}/timeline?before={third.pk}&limit=1")) == 1
    compared = caller.get(f"{path}/compare?with={second.pk}")
    assert (compared["before"], compared["after"]) == (second.pk, third.pk)
    assert {row["kind"] for row in compared["rows"]} >= {"alike", "removed"}
    assert Caller(UserFactory.create())("GET", f"{path}/request")[0] == 404


def test_strangers_see_nothing(dialog: Dialog) -> None:
    stranger, number = browser_of(UserFactory.create()), dialog.generations.latest("pk").pk
    for path in ("timeline/", f"calls/{number}/", f"context/?at={number}", f"context/text/?at={number}&piece=0"):
        assert stranger.get(f"/d/{dialog.pk}/{path}").status_code == 404
    other: Any = make_dialog()
    assert browser_of(other.owner).get(f"/d/{other.pk}/context/?at={number}").status_code == 404
