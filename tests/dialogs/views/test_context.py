"""What the pages say of a dialog's context, and what people do to it by hand. No browser."""

import re
from html import unescape

import pytest
from django.utils.html import escape

from dialogs.models import Dialog, Question
from dialogs.queries import export
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun
from remediation.policies.policy import ByHand
from remediation.policies.registry import by_hand
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


# -- Health ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt_tokens", "level", "words"),
    [
        (50, "healthy", "50 tok · under 1 % of 128,000 · Healthy"),
        (100_000, "healthy", "100,000 tok · 78 % of 128,000 · Healthy"),
        (100_001, "caution", "100,001 tok · 78 % of 128,000 · Caution"),
        (115_200, "caution", "115,200 tok · 90 % of 128,000 · Caution"),
        (115_201, "critical", "115,201 tok · 90 % of 128,000 · Critical"),
    ],
)
def test_the_ring_says_tokens_percent_and_level(script: Script, prompt_tokens: int, level: str, words: str) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 7}})
    dialog = send(make_dialog(), "Hi")
    page = browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode()
    ring = re.search(r'<button[^>]*id="ring-button".*?</button>', page, re.S)
    assert ring is not None
    assert f'data-level="{level}"' in ring[0]
    assert words in ring[0]
    assert ring[0].count("gauge-tick") == 2


def test_an_unknown_level_never_shows_a_number(script: Script) -> None:
    script({"text": "Hello.", "usage": "none"})
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    assert "unknown · awaiting report" in client.get(f"/d/{dialog.pk}/").content.decode()
    send(dialog, "Hi")
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "unknown · usage not reported" in page
    ring = re.search(r'id="ring-button".*?</button>', page, re.S)
    assert ring is not None
    assert " tok ·" not in ring[0]
    assert 'class="meter-parts"' not in page


def test_usage_and_history_show_what_was_reported(script: Script) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 4_321, "completion_tokens": 7}})
    dialog = send(make_dialog(), "Hi")
    client = browser_of(dialog.owner)
    answer = dialog.turns.get(role="assistant")
    shown = client.get(f"/d/{dialog.pk}/turn/{answer.seq}/usage/", follow=True)
    assert shown.redirect_chain[-1][0] == f"/d/{dialog.pk}/context/?at={answer.generation_id}"
    assert "4,321 tokens reported" in in_one_line(shown.content.decode())
    for former in ("health/", "archive/"):
        assert client.get(f"/d/{dialog.pk}/{former}?q=x")["Location"] == f"/d/{dialog.pk}/context/?q=x"
    assert client.get(f"/d/{dialog.pk}/turn/1/usage/").status_code == 404


def test_the_text_of_discarded_attempts_is_on_no_page(script: Script) -> None:
    full = {"prompt_tokens": 950, "completion_tokens": 5}
    script({"text": "Kept.", "usage": full}, {"text": "SENTINEL", "usage": full}, context_length=1000)
    dialog = send(make_dialog(), "one", "two")
    question = Question.objects.get(dialog=dialog)
    staff = browser_of(make_operator())
    calls = [f"context/?at={pk}" for pk in dialog.generations.values_list("pk", flat=True)]
    for path in ("", "context/", *calls, "details/", "frames?after=0"):
        assert "SENTINEL" not in staff.get(f"/d/{dialog.pk}/{path}").content.decode()
    page = staff.get(f"/q4h/{question.pk}/").content.decode()
    assert "SENTINEL" not in page
    assert page.count("discarded") == 3
    assert "SENTINEL" not in "".join(export.as_markdown(dialog)) + "".join(export.as_json(dialog))


def test_a_small_window_is_healthy_until_it_is_critical(script: Script) -> None:
    script({"text": "x", "usage": {"prompt_tokens": 16_712, "completion_tokens": 7}}, context_length=32_768)
    dialog = send(make_dialog(), "Hi")
    client = browser_of(dialog.owner)
    page = client.get("/models/test/model/").content.decode()
    assert "32,768" in page
    assert "<code>context_length</code>" in page
    assert page.count("29,491") == 2 and "100,000" not in page and "no caution band" in page, "green, then red"
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "51 % of 32,768 · Healthy" in page and "Critical above 29,491 tokens." in in_one_line(page)
    assert "Caution above" not in page and "caution band" not in page
    assert client.get("/models/test/none/").status_code == 404
    assert "model" in client.get("/models/").content.decode()


def test_a_models_page_names_the_day_on_which_it_ends(script: Script) -> None:
    script({"text": "Hello."})
    client = browser_of(UserFactory.create())
    assert "retired on 2026-07-24" in client.get("/models/deepseek/deepseek-chat/").content.decode()
    assert "retire" not in client.get("/models/anthropic/claude-fable-5-2/").content.decode()


def test_a_models_page_names_its_prices_or_that_none_is_known(script: Script) -> None:
    script({"text": "Hello."})
    client = browser_of(UserFactory.create())
    page = in_one_line(re.sub(r"<[^>]*>", "", client.get("/models/anthropic/claude-haiku-5-5/").content.decode()))
    assert "$0.1 in, $0.01 from the cache, $0.5 out" in page
    assert "$0.5 in, $0.05 from the cache, $2.5 out, for prompts above 100,000 tokens per million tokens" in page
    assert "dialogs show no cost" in client.get("/models/test/model/").content.decode()


# -- The context, by hand ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hand", [policy.by_hand for policy in by_hand()], ids=lambda hand: hand.verb)
def test_instructions_that_leave_no_room_are_named_as_such(script: Script, hand: ByHand) -> None:
    script({"text": "Hello.", "usage": "none"}, context_length=4_096)
    dialog = send(make_dialog(instructions="Be careful and kind. " * 900), "one")
    client = browser_of(dialog.owner)
    preview = client.get(f"/d/{dialog.pk}/context/?preview={hand.verb}").content.decode()
    panel = client.get(f"/d/{dialog.pk}/details/").content.decode()
    alone = re.compile(r"Instructions, tools and reminders (alone )?take est\. \d,\d+ of 4,096 tokens")
    assert alone.search(preview)
    assert alone.search(panel)
    assert "est. 0 tokens" not in preview + panel


def test_a_huge_turn_is_whole_at_its_own_address(script: Script) -> None:
    huge = {"path": "x" * 60_000}
    script(
        {"match": "again", "text": "END of the answer. " * 4_000},
        {"tool_calls": [{"name": "no_such_tool", "arguments": huge}]},
        {"text": "Done."},
        context_length=1_000_000,
        optimal_max_tokens=900_000,
    )
    dialog = send(make_dialog(), "word " * 100_000, "again")
    client = browser_of(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert len(page) < 300_000
    for turn in dialog.turns.exclude(text="again").exclude(text="Done."):
        whole = client.get(f"/d/{dialog.pk}/turn/{turn.seq}/")
        assert whole["Content-Type"] == "text/plain; charset=utf-8"
        assert turn.text in whole.content.decode()
        if turn.role == "tool":
            assert huge["path"] in whole.content.decode()
            assert f'href="/d/{dialog.pk}/turn/{turn.seq}/">Show all</a>' in page
        elif turn.text:
            assert f"The first 50,000 of {len(turn.text):,} characters." in page
    assert browser_of(UserFactory.create()).get(f"/d/{dialog.pk}/turn/1/").status_code == 404


def number_of(words: str) -> int:
    return int(words.replace(",", ""))


WITHOUT_A_WHOLE = re.compile(r"exceeds 80%|80 % of|\+20 %")  # fixed texts, and thresholds in words


def test_every_share_on_a_page_says_of_what(script: Script) -> None:
    script({"text": "Hello. " * 300, "usage": {"prompt_tokens": 4_321, "completion_tokens": 7}}, context_length=32_000)
    dialog = send(make_dialog(context_policy="breaking", context_limit=4_000), "Hi")
    client, answer = browser_of(dialog.owner), dialog.turns.get(role="assistant")
    result = 0
    for path in ("", f"context/?at={answer.generation_id}", "context/"):
        page = client.get(f"/d/{dialog.pk}/{path}").content.decode()
        text = " ".join(
            unescape(
                re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", " ", page[page.index("<main") :], flags=re.S)
            ).split()
        )
        for share in re.finditer(r"\d+(\.\d)? ?%", WITHOUT_A_WHOLE.sub("", text)):
            result += 1
            after = WITHOUT_A_WHOLE.sub("", text)[share.end() : share.end() + 50]
            assert re.match(r" (est\. share )?of (this policy's limit of |the window, )?[\d,]+", after), (path, after)
    assert result > 3


@pytest.mark.parametrize("hand", [policy.by_hand for policy in by_hand()], ids=lambda hand: hand.verb)
def test_a_rewrite_by_hand_asks_before_it_loses_sight_of_messages(script: Script, hand: ByHand) -> None:
    script({"text": "A long answer. " * 60})
    dialog = send(make_dialog(), "one", "two", "three")
    client = browser_of(dialog.owner)
    address = f"/d/{dialog.pk}/context/{hand.slug}/"
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    forms = re.findall(rf'<(?:form|button)[^>]*hx-post="{address}"[^>]*>', page)
    assert forms or f"?preview={hand.verb}" in page
    assert all(f'hx-confirm="{escape(hand.question)}"' in form for form in forms)
    asked = client.post(address, follow=True)
    assert asked.redirect_chain[-1][0] == f"/d/{dialog.pk}/context/?preview={hand.verb}"
    assert "Nothing is done yet." in asked.content.decode()
    assert Dialog.objects.get(pk=dialog.pk).requested_rewrite == ""
    client.post(address, {"confirmed": "yes"})
    assert Dialog.objects.get(pk=dialog.pk).requested_rewrite == hand.verb


def test_a_fresh_start_stands_in_the_transcript_and_can_be_undone(script: Script) -> None:
    script({"text": "A long answer. " * 60})
    dialog = send(make_dialog(), "one", "two", "three")
    client = browser_of(dialog.owner)
    assert client.get(f"/d/{dialog.pk}/context/?preview=fresh_start").status_code == 200
    client.post(f"/d/{dialog.pk}/context/fresh-start/", {"confirmed": "yes"})
    drive(dialog.pk)
    run = RemediationRun.objects.get(dialog=dialog)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert f'id="run-{run.pk}"' in page
    assert "Fresh start from a handover est." in page
    RemediationRun.objects.filter(pk=run.pk).update(policy="breaking")  # whose recovery may lead there too
    again = client.get(f"/d/{dialog.pk}/").content.decode()
    assert again.count("Fresh start from a handover") == page.count("Fresh start from a handover") > 1
    assert client.get(f"/d/{dialog.pk}/archive/{run.pk}/").status_code == 200
    assert "A <mark>long</mark> answer." in in_one_line(client.get(f"/d/{dialog.pk}/context/?q=long").content.decode())
    client.post(f"/d/{dialog.pk}/archive/{run.pk}/undo/")
    run.refresh_from_db()
    assert run.undone_by == dialog.owner


def test_reminders_are_edited_on_the_page(script: Script) -> None:
    dialog = make_dialog()
    client = browser_of(dialog.owner)
    html = client.post(f"/d/{dialog.pk}/reminders/", {"text": "Mind the gap"}, headers=HTMX).content.decode()
    assert 'id="reminders-panel"' in html
    assert "est. " in html
    row = dialog.reminders.get()
    client.post(f"/d/{dialog.pk}/reminders/{row.pk}/", {"text": "Mind the step"})
    assert dialog.reminders.get().text == "Mind the step"
    assert client.post(f"/d/{dialog.pk}/reminders/", {"text": ""}, headers=HTMX).status_code == 400
    client.post(f"/d/{dialog.pk}/reminders/{row.pk}/delete/")
    assert not dialog.reminders.exists()


def test_a_way_to_make_room_is_advised_and_undone(script: Script) -> None:
    script({"text": "A long answer about the importer. " * 60}, context_length=9_000)
    dialog = send(make_dialog(context_policy="summarize"), *("one", "two", "three", "four", "five", "six", "seven"))
    client = browser_of(dialog.owner)
    page = in_one_line(client.get(f"/d/{dialog.pk}/predictions/").content.decode())
    assert page.count(">Make room</button>") == 1
    advised, _, others = page.partition('id="ways"')
    sizes = re.search(r"frees est. ([\d,]+) tokens.*?est. ([\d,]+) → ([\d,]+) tokens", advised)
    assert sizes
    frees, before, after = map(number_of, sizes.groups())
    assert f"/d/{dialog.pk}/context/summarize/" in advised and before - after == frees
    became = re.search(r"(\d+) messages become this summary\.", advised)
    assert became and "Undo" not in others
    assert all(policy.by_hand.hint in others for policy in by_hand() if policy.by_hand)

    client.post(f"/d/{dialog.pk}/context/summarize/", {"confirmed": "yes"})
    drive(dialog.pk)
    run = RemediationRun.objects.get(dialog=dialog)
    assert (run.est_before, run.est_after < run.est_before) == (before, True)
    story = in_one_line(client.get(f"/d/{dialog.pk}/predictions/").content.decode()).partition('id="story"')[2]
    assert f"est. {run.est_before:,} → {run.est_after:,} tokens" in story and story.count(">Undo</button>") == 1

    back = f"/d/{dialog.pk}/context/?at={dialog.generations.latest('pk').pk}"
    answer = client.post(f"/d/{dialog.pk}/archive/{run.pk}/undo/", headers={"Referer": f"http://testserver{back}"})
    assert answer["Location"] == back, "it stays at the place"
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    told = re.search(r"(\d+) messages are back. est. ([\d,]+) → ([\d,]+) tokens", page)
    assert told and (number_of(told[2]), number_of(told[3])) == (run.est_after, run.est_before)
    assert told[1] == became[1]
    story = in_one_line(client.get(f"/d/{dialog.pk}/predictions/").content.decode()).partition('id="story"')[2]
    assert ", undone</a>" in story and ">Undo</button>" not in story
    again = in_one_line(client.get(f"/d/{dialog.pk}/predictions/").content.decode()).partition('id="ways"')[0]
    assert ">Make room</button>" in again and "frees est. " in again, "what it would do is told again"
    elsewhere = client.post(f"/d/{dialog.pk}/archive/{run.pk}/undo/", headers={"Referer": "http://testserver/q4h/"})
    assert elsewhere["Location"] == f"/d/{dialog.pk}/"
    asked = client.post(f"/d/{dialog.pk}/context/summarize/", headers={**HTMX, "Referer": f"http://testserver{back}"})
    assert asked["HX-Redirect"] == f"/d/{dialog.pk}/", "where one sees it happen"
    drive(dialog.pk)
    story = in_one_line(client.get(f"/d/{dialog.pk}/predictions/").content.decode()).partition('id="story"')[2]
    undo = story.partition(", undone</a>")[2].partition("</span>")[0]
    assert undo.endswith(f"est. {run.est_after:,} → {run.est_before:,} tokens"), "what came later is not its outcome"


def test_a_dialog_without_a_title_has_a_name() -> None:
    dialog = make_dialog()
    page = browser_of(dialog.owner).get(f"/d/{dialog.pk}/").content.decode()
    assert f"New dialog with {dialog.agent}" in page and f"Dialog {str(dialog.pk)[:8]}" not in page
    assert str(Dialog.objects.get(pk=dialog.pk)) == "New dialog", "its agent is not asked for"
