"""The request of any call, the timeline and the comparison, as pages and as JSON."""

from typing import Any

import pytest

from dialogs.actions import reminders, rewrite_requests
from dialogs.context.sent import Sent
from dialogs.models import Dialog, Generation, Question
from dialogs.queries.timeline import MOST, moments
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
    html = page(dialog, f"calls/{newest.pk}/")
    assert "Equal to what was sent, byte for byte." in html and Sent.of(newest.sent).digest in html
    order = [html.index(text) for text in ("Be brief.", "Goal: go on.", "third", "Mind the gap")]
    assert order == sorted(order)
    assert "4,321 tokens reported" in html and "summary and ledger" in html and "reminders" in html
    assert f"/d/{dialog.pk}/calls/{newest.pk}/" in page(
        dialog, f"turn/{dialog.turns.filter(role='assistant').last().seq}/usage/"
    )


def test_the_text_of_an_answer_is_text(dialog: Dialog) -> None:
    second = dialog.generations.order_by("pk")[1]
    assert "Understood &lt;b&gt;well&lt;/b&gt;." in page(dialog, f"calls/{second.pk}/")


def test_what_cannot_be_made_again_says_so(dialog: Dialog) -> None:
    newest = dialog.generations.latest("pk")
    Generation.objects.filter(pk=newest.pk).update(sent=None)
    assert "Cannot be made again: this call was made before" in page(dialog, f"calls/{newest.pk}/")
    assert "not kept" in page(dialog, "timeline/")
    second = dialog.generations.order_by("pk")[1]
    dialog.turns.filter(seq=1).update(text="another")
    assert "Differs from what was sent: a row" in page(dialog, f"calls/{second.pk}/")


def test_the_timeline_draws_each_call_and_says_the_same_as_a_table(dialog: Dialog) -> None:
    Question.objects.create(dialog=dialog, kind=Question.Kind.QUESTION, text="Which one?")
    html = page(dialog, "timeline/")
    assert html.count('class="column"') == 3 == html.count("<td>kept</td>")
    assert ">tokens</text>" in html and ">6k</text>" in html and ">0</text>" in html
    assert 'data-kind="instructions"' in html and "Round 2 began" in html and "Question for a human" in html
    (first, *_, last) = moments(dialog)
    assert sum(last.shares.values()) == last.tokens == 4_321 and last.is_reported
    assert [mark.kind for mark in last.marks] == ["round", "question"] and first.marks == ()


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
    html = page(dialog, "timeline/")
    assert html.count('class="column"') == MOST and "Its worker was lost" in html and "Older" in html
    earlier = page(dialog, f"timeline/?before={dialog.generations.order_by('-pk')[MOST - 1].pk}")
    assert earlier.count('class="column"') == 3 and "Newest" in earlier
    for odd in ("x", "-1", "9" * 40, ""):
        assert "column" in page(dialog, f"timeline/?before={odd}")


def test_two_requests_beside_each_other(dialog: Dialog) -> None:
    first, second, third = dialog.generations.order_by("pk")
    html = page(dialog, f"calls/{second.pk}/compare/?with={first.pk}")
    assert "alike" in html and f"+ only in call {second.pk}" in html and "only in call " + str(first.pk) not in html
    html = page(dialog, f"calls/{second.pk}/compare/?with={third.pk}")
    assert f"− only in call {second.pk}" in html and "Goal: go on." in html
    assert browser_of(dialog.owner).get(f"/d/{dialog.pk}/calls/{second.pk}/compare/?with=x").status_code == 404


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
    assert timeline[-1]["marks"] == [{"kind": "round", "text": "Round 2 began"}]
    assert len(caller.get(f"/dialogs/{dialog.pk}/timeline?before={third.pk}&limit=1")) == 1
    compared = caller.get(f"{path}/compare?with={second.pk}")
    assert (compared["before"], compared["after"]) == (second.pk, third.pk)
    assert {row["kind"] for row in compared["rows"]} >= {"alike", "removed"}
    assert Caller(UserFactory.create())("GET", f"{path}/request")[0] == 404


def test_strangers_see_nothing(dialog: Dialog) -> None:
    stranger, number = browser_of(UserFactory.create()), dialog.generations.latest("pk").pk
    for path in ("timeline/", f"calls/{number}/", f"calls/{number}/compare/?with={number}"):
        assert stranger.get(f"/d/{dialog.pk}/{path}").status_code == 404
    other: Any = make_dialog()
    assert browser_of(other.owner).get(f"/d/{other.pk}/calls/{number}/").status_code == 404
