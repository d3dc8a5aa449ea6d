"""Small files of our own in the forms of others."""

import json
from pathlib import Path

import pytest

from dominds.llm.messages import Role
from remediation.context import UnitRole
from remediation.evaluation.dialogs import units_of
from remediation.evaluation.formats import UnknownFormat, load
from tests.remediation.building import count
from tests.remediation.evaluation.exports import FRIENDS, MESSAGES, written

NOTES = [
    {"id": "pre-1", "scenario": "tea", "topic": "a", "question": [[{"role": "user", "content": "I drink oolong."}]]},
    {"id": "pre-2", "scenario": "tea", "topic": "b", "question": [[{"role": "user", "content": "I am 41."}]]},
]
ASKED = [{"id": "q-1", "scenario": "tea", "question": [[{"role": "user", "content": "What do I drink?"}]]}]
TRUTH = [{"id": "q-1", "ground_truth": ["oolong"], "source": "I drink oolong."}]
EXPORT = {
    "dialog": {"id": "7"},
    "generations": [],
    "turns": [
        {
            "seq": 3,
            "position": 2,
            "role": "assistant",
            "text": "",
            "tool_calls": [{"id": "x", "name": "read", "arguments": {"path": "a.py"}}],
            "tool_call_id": None,
            "status": "complete",
        },
        {
            "seq": 1,
            "position": 1,
            "role": "user",
            "text": "Read a.py",
            "tool_calls": [],
            "tool_call_id": None,
            "status": "answered",
        },
        {
            "seq": 4,
            "position": 3,
            "role": "tool",
            "text": "no such file",
            "tool_calls": [],
            "tool_call_id": "x",
            "status": "error",
        },
        {
            "seq": 5,
            "position": 4,
            "role": "notice",
            "text": "Compacted.",
            "tool_calls": [],
            "tool_call_id": None,
            "status": "complete",
        },
        {
            "seq": 6,
            "position": None,
            "role": "user",
            "text": "queued",
            "tool_calls": [],
            "tool_call_id": None,
            "status": "queued",
        },
    ],
}


def test_a_session_of_the_conformance_kit_asks_for_its_canaries(tmp_path: Path) -> None:
    session = {
        "turns": [
            {"role": "system", "content": "Follow all rules."},
            {"role": "user", "text": "The cap is $700."},
            {"role": "assistant", "content": "Noted."},
            {"role": "user", "content": "Update: the cap is $500 now."},
        ],
        "canaries": [
            {
                "id": "cap",
                "type": "hard_constraint",
                "content": "Update: the cap is $500 now.",
                "required_tokens": ["$500", "cap"],
                "direct_question": "What is the cap?",
                "superseded_tokens": ["$700"],
            }
        ],
    }
    (dialog,) = load([written(tmp_path / "kit.json", [session])])
    assert (dialog.instructions, [turn.id for turn in dialog.turns]) == ("Follow all rules.", ["2", "3", "4"])
    (probe,) = dialog.probes
    assert (probe.question, probe.kind, probe.evidence) == ("What is the cap?", "hard_constraint", ("4",))
    assert (probe.sentences, probe.superseded) == (("$500", "cap"), ("$700",))


def test_sessions_of_friends_in_their_order_with_dates_and_questions(tmp_path: Path) -> None:
    (dialog,) = load([written(tmp_path / "friends.json", [FRIENDS])])
    assert dialog.format == "locomo"
    assert [turn.id for turn in dialog.turns] == ["D1:1", "D1:2", "D2:1", "D10:1"]
    assert dialog.turns[0].message.text == "[9:00 am on 1 March, 2024]\nAna: I bought a kayak! [shares a red kayak]"
    assert dialog.turns[0].words == "I bought a kayak!"
    assert [turn.message.role for turn in dialog.turns[:2]] == [Role.USER, Role.ASSISTANT]
    assert [(probe.kind, probe.evidence) for probe in dialog.probes] == [
        ("multi-hop", ("D1:1", "D10:1")),
        ("single-hop", ("D2:1",)),
    ]


def test_messages_become_units_with_their_results_though_ids_repeat(tmp_path: Path) -> None:
    (dialog,) = load([written(tmp_path / "chat.json", MESSAGES)])
    assert (dialog.format, dialog.instructions) == ("messages", "You sell tea.")
    units = units_of(dialog, count)
    assert [unit.role for unit in units] == [UnitRole.USER, UnitRole.TOOL, UnitRole.TOOL]
    assert [unit.messages[-1].text for unit in units] == ["Where is A-1001?\n", "shipped", "delivered"]
    assert [unit.source for unit in units] == [(1,), (2, 3), (4, 5)]


def test_message_lists_come_alone_in_objects_in_lists_and_in_lines(tmp_path: Path) -> None:
    alone, many = written(tmp_path / "a.json", MESSAGES), written(tmp_path / "b.json", [MESSAGES, MESSAGES])
    objects = written(tmp_path / "c.jsonl", {"messages": MESSAGES}, {"messages": MESSAGES, "tools": []})
    assert len(load([alone, many, objects])) == 5


def test_runs_of_an_agent(tmp_path: Path) -> None:
    (dialog,) = load([written(tmp_path / "runs.json", [{"task_id": 1, "reward": 1.0, "traj": MESSAGES}])])
    assert (dialog.format, len(dialog.turns)) == ("tau-bench", 5)


def test_notes_questions_and_answers_are_joined(tmp_path: Path) -> None:
    written(tmp_path / "x.json", *NOTES)
    written(tmp_path / "y.json", *ASKED)
    written(tmp_path / "z.json", *TRUTH)
    (dialog,) = load([tmp_path])
    assert dialog.format == "bfcl"
    assert [turn.words for turn in dialog.turns] == ["I drink oolong.", "I am 41."]
    assert [(probe.question, probe.answers) for probe in dialog.probes] == [("What do I drink?", ("oolong",))]


def test_a_long_dialog_asks_for_the_sentence_that_answers(tmp_path: Path) -> None:
    told = {"role": "user", "id": 4, "content": "I like tea. The sprint ends on March 29 at noon. Thanks! ->-> 1,1"}
    written(tmp_path / "chat.json", [{"batch_number": 1, "turns": [[told]]}])
    asked = {
        "question": "When does it end?",
        "answer": "The sprint ends on March 29.",
        "source_chat_ids": {"a": [4, 9]},
    }
    written(tmp_path / "questions.json", {"knowledge_update": [asked], "event_ordering": []})
    (dialog,) = load([tmp_path])
    assert (dialog.format, dialog.turns[0].words) == (
        "beam",
        "I like tea. The sprint ends on March 29 at noon. Thanks!",
    )
    assert [(one.evidence, one.sentences) for one in dialog.probes] == [
        (("4",), ("The sprint ends on March 29 at noon.",))
    ]


def test_a_thread_tells_what_its_messages_quote(tmp_path: Path) -> None:
    quote = "> The header must be sent before the body is,\n> even on errors.\nWhy?"
    messages = [{"speaker": "A", "text": "Hello."}, {"speaker": "B", "text": quote}]
    (dialog,) = load([written(tmp_path / "threads.json", [{"messages": messages}])])
    assert [turn.words for turn in dialog.turns] == ["Hello.", "Why?"]
    assert dialog.turns[1].quotes == ("The header must be sent before the body is, even on errors.",)


def test_our_own_export_by_position_without_notices_and_queued_messages(tmp_path: Path) -> None:
    (dialog,) = load([written(tmp_path / "dialog.json", EXPORT)])
    assert dialog.format == "export"
    (asked, read) = units_of(dialog, count)
    assert asked.text == "Read a.py"
    assert read.failed
    assert json.loads(read.messages[0].tool_calls[0].arguments) == {"path": "a.py"}


@pytest.mark.parametrize("content", [{}, [], {"messages": "none"}, [1, 2], [{"role": "user"}]])
def test_what_holds_no_dialog_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnknownFormat, match=r"odd\.json"):
        load([written(tmp_path / "odd.json", content)])


def test_what_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"role": "user"}\nhello', encoding="utf-8")
    with pytest.raises(UnknownFormat, match="line 2"):
        load([broken])
