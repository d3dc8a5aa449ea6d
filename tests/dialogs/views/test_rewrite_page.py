"""The page of one rewrite: its act, before and after aligned, why each piece went, what became of the facts."""

import re

import pytest
from django.utils import translation

from dialogs.actions import imported_turns, rewrite_requests
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from dialogs.templatetags.words import step_note
from dominds.llm.messages import Message, Role, ToolCall
from remediation.models import RemediationRun
from remediation.prompts import load
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = (
    "The staging database listens on port 6543 of db7.example.org. Never restart it before 18:00.",
    "Our invoice numbers begin with RX-2209, and Marta Keller signs what is above 4,800 EUR.",
    "Write the report in British English, please, and keep the heading of chapter 3.",
    "What did the run of yesterday say?",
    "And which file is next?",
)
SUMMARY = "Goal: the report. Rules: never restart the staging database db7.example.org, port 6543, before 18:00."


def rewritten(script: Script, verb: str, summary: str = SUMMARY) -> tuple[Dialog, RemediationRun]:
    script({"match": "Earlier summary", "text": summary}, {"text": "Noted, and done as you say. " * 100})
    dialog = send(make_dialog(context_limit=4_000), *TEXTS)
    rewrite_requests.request(dialog.pk, verb, dialog.owner)
    drive(dialog.pk)
    return dialog, RemediationRun.objects.get(dialog=dialog)


def shown(dialog: Dialog, run: RemediationRun) -> str:
    return in_one_line(browser_of(dialog.owner).get(f"/d/{dialog.pk}/archive/{run.pk}/").content.decode())


def rows_of(page: str) -> list[str]:
    return re.findall(r'<article class="aligned-row.*?</article>', page, re.S)


def test_each_piece_that_went_stands_beside_what_stands_now_and_why(script: Script) -> None:
    dialog, run = rewritten(script, "break")
    page = shown(dialog, run)
    rows = rows_of(page)
    gone = [row for row in rows if "archived gone" in row]
    assert len(gone) == len(run.removed) > 2
    summarised, left_out = gone[:-1], gone[-1]
    assert all("Among the oldest: a summary stands for it." in row for row in summarised)
    assert "Neither recent nor relevant enough to the task." in left_out
    stand_in = next(place for place, row in enumerate(rows) if SUMMARY in row)
    assert "archived new" in rows[stand_in]
    assert all(f'href="?page=1#piece-{stand_in}"' in row for row in summarised)
    assert any(TEXTS[-1] in row and "As it was." in row for row in rows), "the newest message stands"
    assert [row for row in rows if TEXTS[0] in row and "archived gone" in row]
    assert f'action="/d/{dialog.pk}/archive/{run.pk}/undo/"' in page
    act = re.search(r'<div class="act">.*?</div>', page)
    assert act and f"est. {run.est_before:,} → {run.est_after:,} tokens" in act[0] and "went to the archive" in act[0]
    steps = [f"est. {step['est_before']:,} → {step['est_after']:,} tokens" for step in run.steps]
    assert steps and all(sizes in page for sizes in steps)


def test_a_summary_is_opened_level_by_level(script: Script) -> None:
    dialog, first = rewritten(script, "fresh_start")
    send(dialog, *TEXTS[:3])
    rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
    drive(dialog.pk)
    second = RemediationRun.objects.filter(dialog=dialog).latest("pk")
    browser = browser_of(dialog.owner)

    seen = in_one_line(browser.get(f"/d/{dialog.pk}/context/").content.decode())
    assert f'<a href="/d/{dialog.pk}/archive/{second.pk}/">What it stands for</a>' in seen
    rows = rows_of(shown(dialog, second))
    (stands,) = [row for row in rows if "archived new" in row and "What it stands for" in row]
    (place,) = re.findall(r'href="\?page=1#piece-(\d+)">What it stands for', stands)
    assert "archived gone" in rows[int(place)]
    down = f'<a href="/d/{dialog.pk}/archive/{first.pk}/">What it stands for</a>'
    (older,) = [row for row in rows if down in row]
    assert "archived gone" in older and SUMMARY in older
    assert down in in_one_line(browser.get(f"/d/{dialog.pk}/context/?q=staging").content.decode())
    turns = [row for row in rows_of(shown(dialog, first)) if "archived gone" in row]
    assert turns and all(re.search(r">turn \d+</a>", row) for row in turns) and down not in "".join(turns)


def test_the_facts_are_counted_by_where_they_are_now(script: Script) -> None:
    dialog, run = rewritten(script, "break")
    page = shown(dialog, run)
    run.refresh_from_db()
    assert run.facts is not None
    counts = run.facts["counts"]
    assert sum(counts.values()) == run.facts["all"] >= 3
    assert counts["in_sight"] >= 1
    assert f"{counts['in_sight']} in sight, {counts['one_search_away']} one search away, {counts['lost']} lost" in page


def test_what_neither_summary_nor_ledger_says_is_one_search_away(script: Script) -> None:
    dialog, run = rewritten(script, "break")
    for item in run.view:  # as though nothing had been carried
        if item.get("is_new"):
            item["messages"][0]["text"] = "Nothing."
    run.save()
    page = shown(dialog, run)
    run.refresh_from_db()
    assert run.facts is not None
    assert run.facts["counts"]["in_sight"] == 0
    assert run.facts["counts"]["one_search_away"] == run.facts["all"]
    away = {value for fact in run.facts["away"] for value in fact["values"]}
    assert {"6543", "db7.example.org", "RX-2209"} <= away
    assert "RX-2209" in page


@pytest.mark.parametrize(("verb", "prompts"), [("break", {"hand_off_summary"}), ("compact", {"pruning"})])
def test_the_row_names_the_prompts_that_were_used(script: Script, verb: str, prompts: set[str]) -> None:
    _dialog, run = rewritten(script, verb)
    assert run.prompts == {name: load(name).version for name in run.prompts}
    assert prompts <= set(run.prompts)


def test_a_fresh_start_says_that_the_handover_stands_for_all(script: Script) -> None:
    dialog, run = rewritten(script, "fresh_start")
    gone = [row for row in rows_of(shown(dialog, run)) if "archived gone" in row]
    assert len(gone) == len(run.removed)
    assert all("A fresh start: the handover stands for it" in row for row in gone)


def test_the_page_is_its_owners(script: Script) -> None:
    dialog, run = rewritten(script, "break")
    assert browser_of(UserFactory.create()).get(f"/d/{dialog.pk}/archive/{run.pk}/").status_code == 404


def test_masked_output_is_told_from_what_a_strategy_chose(script: Script) -> None:
    listing = "\n".join(f"{number} lines in src/part_{number}.py" for number in range(120))
    messages = [Message(Role.USER, "Look at the tree.")]
    messages += [
        Message(Role.ASSISTANT, f"Thought {number}: " + "the tree has many parts. " * 60) for number in range(24)
    ]
    for number in range(3):
        call = ToolCall(f"call-{number}", "list_tree", "{}")
        messages += [Message(Role.ASSISTANT, "", (call,)), Message(Role.TOOL, listing, tool_call_id=call.id)]
        messages += [Message(Role.ASSISTANT, f"Seen, {number}."), Message(Role.USER, f"Again, {number}?")]
    script({"text": "Yes. " * 9}, context_length=12_000)
    dialog = make_dialog()
    imported_turns.store(dialog, messages, [])
    rewrite_requests.request(dialog.pk, "summarize", dialog.owner)
    drive(dialog.pk)
    run = RemediationRun.objects.get(dialog=dialog)
    rows = [row for row in rows_of(shown(dialog, run)) if "archived gone" in row and "archived new" in row]
    assert rows
    assert all("[Result of list_tree" in row and "Old tool output: a line says what it was" in row for row in rows)


@pytest.mark.parametrize(
    ("note", "english", "chinese"),
    [
        (
            "removed 1,200 units of low relevance",
            "removed 1,200 units of low relevance",
            "移除了 1,200 个相关性低的单元",
        ),
        ("shortened 1 unit by type", "shortened 1 unit by type", "按类型缩短了 1 个单元"),
        (
            "summarised 1 units; nothing to judge",
            "summarized 1 unit; nothing to judge",
            "总结了 1 个单元; 没有可判断的内容",
        ),
        (
            "chosen by rule, because the summary is longer than asked (1,200 tokens for at most 900)",
            "chosen by rule, because the summary is longer than asked (1,200 tokens for at most 900)",
            "按规则选取，因为摘要超出要求的长度（1,200 个 token，上限 900 个）",
        ),
        (
            "2 missing facts went to the ledger",
            "2 missing facts went to the ledger",
            "2 条缺失的事实已列入关键事实清单",
        ),
        ("a plug-in's own words", "a plug-in's own words", "a plug-in's own words"),
    ],
)
def test_what_a_step_did_is_said_in_the_readers_language(note: str, english: str, chinese: str) -> None:
    """Also of rows that older versions stored."""
    with translation.override("en"):
        assert step_note(note) == english
    with translation.override("zh-hans"):
        assert step_note(note) == chinese


def test_a_rewrite_is_named_by_what_it_did(script: Script) -> None:
    dialog, run = rewritten(script, "break")
    page = in_one_line(browser_of(dialog.owner).get(f"/d/{dialog.pk}/context/").content.decode())
    assert f'#run-{run.pk}">Context shortened</a>' in page and f"rewrite {run.pk}" not in page
    page = shown(dialog, run)
    assert 'folded"' in page and page.count('<details class="unfold">') == page.count('folded"')


def test_the_archive_draws_what_models_wrote_as_their_dialog_does(script: Script) -> None:
    """Without anything that runs or is fetched; what people wrote stays as they typed it."""
    hostile = "<script>alert(1)</script> [x](javascript:alert(1)) ![y](https://evil.example/y.png)"
    script({"text": f"# Plan\n\nThis is **bold**, and `code`. {hostile}\n\n- one\n- two\n" + "Filler words. " * 60})
    dialog = send(make_dialog(context_limit=4_000), *(f"Is *this* plain, number {n}?" for n in range(8)))
    rewrite_requests.request(dialog.pk, "break", dialog.owner)
    drive(dialog.pk)
    run = RemediationRun.objects.filter(dialog=dialog).latest("pk")
    browser = browser_of(dialog.owner)
    page = in_one_line(browser.get(f"/d/{dialog.pk}/archive/{run.pk}/").content.decode())
    assert "<strong>bold</strong>" in page and "<code>code</code>" in page and "<li>one</li>" in page
    assert "Is *this* plain, number" in page
    assert "<script>alert" not in page and "javascript:" not in page.replace("[x](javascript:alert(1))", "")
    assert not re.search(r"<img[^>]+evil", page)
