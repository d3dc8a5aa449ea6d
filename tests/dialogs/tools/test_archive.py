"""Looking up what is no longer in sight."""

from typing import Any

import pytest

from dialogs.actions import messages
from dialogs.context.tool_calls import Result
from dialogs.models import Artifact, Dialog, Turn
from dialogs.tools.registry import builtin_tools
from dialogs.tools.tool import Invocation
from remediation.models import RemovedUnit
from tests.dialogs.conftest import Script
from tests.dialogs.factories import RewriteFactory, make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)


def use(dialog: Dialog, tool: str, **arguments: Any) -> Result:
    run = builtin_tools()[tool].outside
    assert run is not None
    return run(Invocation(dialog.pk, "call", arguments))


def say(dialog: Dialog, *texts: str) -> None:
    send(dialog, *texts)


def remove(dialog: Dialog, text: str, unit_id: str = "summary-1") -> RemovedUnit:
    run = RewriteFactory.create(dialog=dialog)
    return RemovedUnit.objects.create(
        run=run, dialog=dialog, unit_id=unit_id, kind="summary", role="user", est_tokens=1, text=text
    )


def test_older_turns_of_all_rounds_are_found(script: Script) -> None:
    clear = {"tool_calls": [{"name": "clear_mind", "arguments": {"reminder_content": "p"}}]}
    script({"match": "Re-entry package", "text": "Here I am."}, {"match": "forget", **clear}, {"text": "Noted."})
    dialog = make_dialog()
    say(dialog, "The deploy key is called HERON-7.", "forget", "and now?")
    dialog.refresh_from_db()
    assert dialog.round_number == 2
    answer = use(dialog, "search_archive", query="deploy key")
    first, beside, *_ = answer.text.splitlines()
    assert first == "seq 1 (user, round 1): The **deploy** **key** is called HERON-7."
    assert beside == "  beside it, seq 2 (assistant, round 1): Noted."
    assert use(dialog, "read_archive", seq=1) == Result("The deploy key is called HERON-7.")


def test_the_question_itself_is_not_an_answer(script: Script) -> None:
    search = {"name": "search_archive", "arguments": {"query": "heron"}}
    script({"match": "where", "tool_calls": [search]}, {"text": "Noted."})
    dialog = make_dialog()
    say(dialog, "Heron is in Larch Street.", "where is the heron?")
    result = dialog.turns.get(role=Turn.Role.TOOL)
    assert "Larch Street" in result.text
    assert "where is the heron" not in result.text


def test_more_words_found_come_first(script: Script) -> None:
    dialog = make_dialog()
    say(dialog, "red boat, blue sail", "red house", "a green hill")
    lines = use(dialog, "search_archive", query="BLUE red").text.split("\n\n")
    assert [line.split(" ", 2)[1] for line in lines[:2]] == ["1", "3"]


def test_texts_that_stood_in_for_turns_are_found_and_read(script: Script) -> None:
    dialog = make_dialog()
    unit = remove(dialog, "Summary: the pump failed with E17.")
    remove(dialog, "a copy of turn 1 with E17", unit_id="turn-1")
    answer = use(dialog, "search_archive", query="E17")
    assert answer.text == f"unit {unit.pk} (summary): Summary: the pump failed with **E17**."
    assert use(dialog, "read_archive", unit=unit.pk).text == unit.text


def test_nothing_of_another_dialog_is_seen(script: Script) -> None:
    mine, other = make_dialog(), make_dialog()
    say(other, "the secret HERON")
    unit = remove(other, "secret HERON summary")
    artifact = Artifact.objects.create(dialog=other, tool_call_id="1", text="secret HERON artifact")
    answers = [
        use(mine, "search_archive", query="HERON"),
        use(mine, "read_archive", seq=1),
        use(mine, "read_archive", unit=unit.pk),
        use(mine, "read_artifact", id=artifact.pk),
    ]
    assert not any("secret" in answer.text for answer in answers)
    assert [answer.failed for answer in answers] == [False, True, True, True]


def test_a_queued_message_is_not_yet_said(script: Script) -> None:
    dialog = make_dialog()
    messages.post_message(dialog.pk, "first")
    messages.post_message(dialog.pk, "heron in the queue")
    assert use(dialog, "search_archive", query="heron").text.startswith("Nothing earlier")


@pytest.mark.parametrize("query", ["%%", "a_b", "'; DROP TABLE", "\x00\x00", "(((", "\\\\"])
def test_odd_queries_find_nothing_and_break_nothing(script: Script, query: str) -> None:
    dialog = make_dialog()
    say(dialog, "plain words")
    assert "plain" not in use(dialog, "search_archive", query=query).text


def test_a_long_entry_is_read_in_parts(script: Script) -> None:
    dialog = make_dialog()
    text = "".join(f"{number:05d}," for number in range(2_000))  # 12,000 characters
    artifact = Artifact.objects.create(dialog=dialog, tool_call_id="1", text=text)
    result, offset = "", 0
    while True:
        piece, _, note = use(dialog, "read_artifact", id=artifact.pk, offset=offset).text.partition("\n[")
        result += piece
        if not note:
            break
        offset = int(note.split("offset=")[1].rstrip("]"))
    assert result == text
    assert use(dialog, "read_artifact", id=artifact.pk, offset=12_000).failed


def test_a_handover_is_opened_like_any_summary(script: Script) -> None:
    dialog = make_dialog()
    say(dialog, "The pump is a Grundfos.", "It failed with E17.")
    text = "Resuming after a milestone: the pump runs\n[Summary of turns 1-2]\nA Grundfos.\nContinue task: go on"
    unit = remove(dialog, text, unit_id="handover-a")
    listed = use(dialog, "read_archive", turns="1-4").text.splitlines()
    assert listed[0].startswith(f"unit {unit.pk} (summary of turns 1-2): Resuming after a milestone")
    assert [line.partition(":")[0] for line in listed[1:]] == ["seq 3 (user)", "seq 4 (assistant)"]
    assert use(dialog, "read_archive", turns="1-2").text.startswith("seq 1 (user): The pump")


def test_a_summary_is_opened_level_by_level(script: Script) -> None:
    dialog, other = make_dialog(), make_dialog()
    say(dialog, "The pump is a Grundfos.", "It failed with E17.", "Order a seal.", "And two bolts.")
    say(other, "secret")
    inner = remove(dialog, "[Summary of turns 1-2]\nThe pump is a Grundfos.", unit_id="summary-a")
    middle = remove(
        dialog,
        "Previous 3 turns: …".replace("…", "1 user message, 2 model responses, 0 tool calls")
        + "\n[Summary of turns 1-4]\nThe pump failed with E17.",
        unit_id="summary-b",
    )
    remove(other, "[Summary of turns 3-4]\nsecret", unit_id="summary-c")
    remove(dialog, "- seal 77", unit_id="ledger-1")
    result = use(dialog, "search_archive", query="E17").text
    assert f"unit {middle.pk} (summary of turns 1-4): " in result

    whole = use(dialog, "read_archive", turns="1-6").text.splitlines()
    assert whole[0].startswith(f"unit {middle.pk} (summary of turns 1-4): Previous 3 turns")
    assert [line.partition(":")[0] for line in whole[1:]] == ["seq 5 (user)", "seq 6 (assistant)"]
    assert use(dialog, "read_archive", turns="1-4").text.splitlines() == [
        f"unit {inner.pk} (summary of turns 1-2): The pump is a Grundfos.",
        "seq 3 (user): It failed with E17.",
        "seq 4 (assistant): Hello.",
    ]
    turns = use(dialog, "read_archive", turns="1-2").text
    assert turns == "seq 1 (user): The pump is a Grundfos.\nseq 2 (assistant): Hello."
    assert use(dialog, "read_archive", turns="1-4", limit=20).text.endswith("read on with offset=20]")
    assert use(dialog, "read_archive", turns="90-95").failed


@pytest.mark.parametrize("arguments", [{}, {"seq": 1, "unit": 1}, {"seq": 1, "turns": "1-2"}, {"turns": "all"}])
def test_one_entry_is_named(script: Script, arguments: dict[str, int]) -> None:
    assert use(make_dialog(), "read_archive", **arguments).failed


def test_every_agent_may_ask_the_archive_repeatedly() -> None:
    tools = builtin_tools()
    for name in ("search_archive", "read_archive", "read_artifact"):
        assert tools[name].always
        assert tools[name].repeatable
