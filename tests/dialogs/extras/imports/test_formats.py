"""Conversations of each kind of export, read from what its program writes."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from dialogs.extras.imports.conversation import NO_RESULT, moment_of
from dialogs.extras.imports.files import conversations_in
from dialogs.queries.export import many_as_json
from dialogs.store.change import open_change
from tests.dialogs.extras.imports import exports
from tests.dialogs.extras.imports.exports import read, spoken
from tests.dialogs.factories import make_dialog


def test_chatgpt_follows_the_current_branch_with_its_tools() -> None:
    (payload,) = read(exports.chatgpt())
    assert (payload.source, payload.title) == ("chatgpt:6b0f-1", "Rolls on a tray")
    assert spoken(payload) == [
        ("user", "[Image or file, not imported]\nHow many rolls fit on this tray?"),
        ("assistant", "python"),
        ("tool", "48"),
        ("assistant", "Six rows of eight: 48."),
        ("user", "And on two trays?"),
    ]
    assert json.loads(payload.messages[1].message.tool_calls[0].arguments) == {"input": "6 * 8"}
    assert (
        payload.left_out["messages of other branches"]
        == payload.left_out["thoughts"]
        == payload.left_out["images and files"]
        == 1
    )
    assert all(text.at and text.at.year == 2025 for text in payload.messages)


def test_chatgpt_without_a_current_node_ends_with_what_was_written_last() -> None:
    shown = exports.chatgpt()[0] | {"current_node": None}
    shown["mapping"]["q2"]["message"]["create_time"] += 9
    (message,) = read([shown])
    assert spoken(message)[-1] == ("user", "And on two trays?")
    assert len(spoken(message)) == 5


def test_claude_brings_attachments_and_calls_made_at_once() -> None:
    (payload,) = read(exports.claude())
    assert payload.source == "claude:c-1"
    assert spoken(payload) == [
        ("user", "Sum up the list.\n\n[Attached: list.txt]\n1\n2\n3\n\n[Attached, not imported: photo.png]"),
        ("assistant", "I add them."),
        ("tool", "A sum is a total."),
        ("tool", "6"),
        ("assistant", "The sum is 6."),
    ]
    calls = payload.messages[1].message.tool_calls
    assert [call.name for call in calls] == ["repl", "web_search"]
    assert [text.message.tool_call_id for text in payload.messages[2:4]] == [calls[1].id, calls[0].id]
    assert payload.left_out["images and files"] == 1


def test_open_webui_tells_calls_from_answers() -> None:
    (message,) = read(exports.open_webui())
    assert (message.source, message.title) == ("open-webui:w-1", "Weather")
    assert spoken(message) == [
        ("user", "Weather in Bern?"),
        ("assistant", "get_weather"),
        ("tool", "8 C, rain"),
        ("assistant", "Rain, 8 degrees."),
        ("user", "And tomorrow?"),
        ("assistant", "Sun."),
    ]
    assert message.left_out["messages of other branches"] == 1


def test_librechat_takes_the_newest_branch_of_its_tree() -> None:
    (message,) = read(exports.librechat())
    assert (message.source, message.title) == ("librechat:l-1", "Sums")
    assert spoken(message) == [
        ("user", "What is 6*7?"),
        ("assistant", "calculator"),
        ("tool", "42"),
        ("assistant", "It is 42."),
        ("user", "Thanks."),
    ]
    assert message.left_out["messages of other branches"] == 1


CALL = {"name": "weather", "input": {"city": "Bern"}}
ITEM = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city": "Bern"}'}


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "content": [{"type": "thinking"}, {"type": "tool_use", "id": "a", **CALL}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "8 C"}]},
            {"role": "assistant", "content": {"type": "text", "text": "Cold."}},
        ],
        [
            {"role": "user", "content": "Weather?"},
            {"type": "reasoning", "summary": []},
            ITEM,
            {"type": "function_call_output", "call_id": "a", "output": "8 C"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Cold."}]},
        ],
        [
            {"from": "human", "value": "Weather?"},
            {"from": "gpt", "tool_calls": [{"id": "a", **CALL}], "value": None},
            {"from": "observation", "value": "8 C"},
            {"role": "model", "parts": [{"text": "Cold."}]},
        ],
    ],
    ids=["blocks", "items", "ShareGPT and parts"],
)
def test_lists_of_messages_are_read_in_the_form_of_any_protocol(messages: list[Any]) -> None:
    said = [("user", "Weather?"), ("assistant", "weather"), ("tool", "8 C"), ("assistant", "Cold.")]
    for export in (messages, {"messages": messages}, {"conversations": messages}, [{"conversations": messages}]):
        (payload,) = read(export)
        assert spoken(payload) == said
        assert "images and files" not in payload.left_out


@pytest.mark.parametrize(
    "export",
    [exports.llama_cpp, exports.lm_studio, exports.jan, exports.gemini_cli, exports.claude_code, exports.codex],
    ids=lambda export: export.__name__,
)
def test_what_programs_store_is_read_as_it_was_said(export: Callable[[], Any]) -> None:
    content = export()
    lines = content if isinstance(content, list) else [content]
    (payload,) = conversations_in(io.BytesIO(b"\n".join(json.dumps(line).encode() for line in lines)), "a.jsonl")
    said = spoken(payload)
    assert said[:2] == [("user", "Weather in Bern?"), ("assistant", "weather")]
    assert said[2][0] == "tool" and "8 C" in said[2][1]
    assert said[3:] == [("assistant", "Rain, 8 degrees.")]
    assert "images and files" not in payload.left_out
    assert read(content) == [payload]


def test_grok_takes_the_newest_branch() -> None:
    (payload,) = read(exports.grok())
    assert (payload.source, payload.title) == ("messages:g-1", "Weather")
    assert spoken(payload) == [
        ("user", "Weather in Bern?"),
        ("assistant", "Rain, 8 degrees."),
        ("user", "And tomorrow?\n\n[Attached, not imported: file]"),
    ]
    left_out = ("messages of other branches", "thoughts", "images and files")
    assert [payload.left_out[kind] for kind in left_out] == [1, 1, 1]
    assert all(one.at and one.at.year == 2025 for one in payload.messages)


def chatgpt_of(*nodes: Any, current: str | None, **more: Any) -> list[dict[str, Any]]:
    return [{"title": "t", "conversation_id": "1", "current_node": current, "mapping": dict(nodes), **more}]


def test_a_lost_parent_loses_nothing_before_it() -> None:
    spoken_node = exports.chatgpt_node
    first, answer, second = (
        spoken_node("q1", None, "user", exports.text("One?"), create_time=1),
        spoken_node("a1", "q1", "assistant", exports.text("One."), create_time=2),
        spoken_node("q2", "gone", "user", exports.text("Two?"), create_time=3),
    )
    (payload,) = read(chatgpt_of(second, answer, first, current="q2"))
    assert [text for _, text in spoken(payload)] == ["One?", "One.", "Two?"]
    assert not payload.left_out["messages of other branches"]


@pytest.mark.parametrize("current", ["gone", None, 7, "piece"])
def test_a_stale_end_leads_to_the_newest_message(current: Any) -> None:
    export = exports.open_webui()
    history = export[0]["chat"]["history"]
    history["currentId"] = current
    history["messages"]["piece"] = {"model": "m", "followUps": ["More?"]}
    (payload,) = read(export)
    assert spoken(payload)[-1] == ("assistant", "Sun.")
    assert len(spoken(payload)) == 6


def test_claude_and_librechat_mend_their_chains_too() -> None:
    said = [
        {
            "uuid": name,
            "sender": "human",
            "text": name,
            "created_at": f"2026-03-01T09:0{at}:00Z",
            "parent_message_uuid": parent,
        }
        for at, (name, parent) in enumerate(
            [("a", "00000000-0000-4000-8000-000000000000"), ("b", "a"), ("c", "gone"), ("d", None)]
        )
    ]
    (payload,) = read([{"uuid": "1", "name": "t", "chat_messages": said, "current_leaf_message_uuid": "gone"}])
    assert [text for _, text in spoken(payload)] == ["a", "b", "c", "d"]
    flat = [
        {
            "messageId": name,
            "parentMessageId": parent,
            "isCreatedByUser": True,
            "text": name,
            "createdAt": f"2026-03-01T09:0{at}:00Z",
        }
        for at, (name, parent) in enumerate([("a", "00000000-0000-0000-0000-000000000000"), ("b", "a"), ("c", "gone")])
    ]
    (payload,) = read({"conversationId": "1", "title": "t", "messages": flat})
    assert [text for _, text in spoken(payload)] == ["a", "b", "c"]


def test_a_circle_of_parents_ends_where_it_began() -> None:
    nodes = [
        exports.chatgpt_node(name, parent, "user", exports.text(name)) for name, parent in (("a", "b"), ("b", "a"))
    ]
    (payload,) = read(chatgpt_of(*nodes, current="b"))
    assert [text for _, text in spoken(payload)] == ["a", "b"]


ASKED = ["One?", "One.", "Two?", "Two."]
LINKS = [("q1", None), ("a1", "q1"), ("q2", "a1"), ("a2", "q2")]


def chatgpt_chain(links: Any, current: Any = "a2", as_list: bool = False) -> Any:
    nodes = [
        exports.chatgpt_node(name, parent, ("USER", "assistant")[at % 2], exports.text(said), create_time=at)
        for at, ((name, parent), said) in enumerate(zip(links, ASKED, strict=True))
    ]
    mapping = [node for _, node in nodes] if as_list else dict(nodes)
    return [{"title": "t", "conversation_id": "1", "current_node": current, "mapping": mapping}]


def open_webui_chain(links: Any, current: Any = "a2", as_list: bool = False) -> Any:
    messages = [
        {"id": name, "parentId": parent, "role": ("user", "ASSISTANT")[at % 2], "content": said, "timestamp": at + 1}
        for at, ((name, parent), said) in enumerate(zip(links, ASKED, strict=True))
    ]
    held = messages if as_list else {message["id"]: message for message in messages}
    return [{"id": "2", "title": "t", "chat": {"history": {"messages": held, "currentId": current}}}]


@pytest.mark.parametrize("export_of", [chatgpt_chain, open_webui_chain])
@pytest.mark.parametrize(
    ("links", "more"),
    [
        (LINKS, {"as_list": True}),
        (LINKS, {"current": "a1"}),  # the mark is older than what follows
        (LINKS, {"current": "q2"}),
        ([("q1", "a2"), *LINKS[1:]], {}),  # a circle
        ([*LINKS[:2], ("q2", "q2"), LINKS[3]], {}),  # its own parent
        ([*LINKS[:2], ("q2", ["a1"]), LINKS[3]], {}),
        ([(name, None) for name, _ in LINKS], {}),  # no parents at all
    ],
)
def test_odd_chains_lose_nothing(export_of: Any, links: Any, more: Any) -> None:
    (payload,) = read(export_of(links, **more))
    assert [text for _, text in spoken(payload)] == ASKED
    assert not payload.left_out["messages of other branches"]


def claude_of(*messages: Any) -> Any:
    return [{"uuid": "1", "name": "t", "chat_messages": list(messages)}]


def librechat_of(*messages: Any) -> Any:
    return {"conversationId": "1", "title": "t", "messages": list(messages)}


def open_webui_of(*messages: Any) -> Any:
    return [{"id": "1", "title": "t", "chat": {"history": {"messages": {one["id"]: one for one in messages}}}}]


def deepseek() -> Any:
    said = [("q", None, [("REQUEST", "Yes?")]), ("a", "q", [("THINK", "Hm."), ("RESPONSE", "Yes.")])]
    nodes = {
        name: {
            "id": name,
            "parent": parent,
            "message": {"fragments": [{"type": kind, "content": text} for kind, text in told]},
        }
        for name, parent, told in said
    }
    return [{"id": "1", "title": "t", "mapping": nodes}]


QA = [("user", "Yes?"), ("assistant", "Yes.")]
NODE = {"parent": None, "children": ["a"]}
LIBRE_Q = {"messageId": "q", "parentMessageId": None, "sender": "User", "text": "Yes?"}
WEB_Q = {"id": "q", "role": "user", "content": "Yes?", "childrenIds": ["a"]}
CLAUDE_Q, CLAUDE_A = {"uuid": "q", "sender": "human", "text": "Yes?"}, {"uuid": "a", "sender": "assistant"}
LISTED = [{"role": role, "content": [{"type": "text", "text": said}]} for role, said in QA]
SHAPES = {
    "ChatGPT, children alone": chatgpt_of(
        ("q", NODE | {"message": {"author": {"role": "user"}, "content": {"parts": [None, "Yes?", ""]}}}),
        ("a", {"message": {"author": "assistant", "content": "Yes."}}),
        current="a",
    ),
    "ChatGPT, by role": chatgpt_of(
        ("q", NODE | {"message": {"role": "user", "content": ["Yes?"]}}),
        ("a", {"parent": "q", "message": {"role": "assistant", "content": {"text": "Yes."}}}),
        current="a",
    ),
    "DeepSeek": deepseek(),
    "Claude, contents as text": claude_of({**CLAUDE_Q, "text": "", "content": "Yes?"}, {**CLAUDE_A, "content": "Yes."}),
    "Claude, a spoken part": claude_of(CLAUDE_Q, {**CLAUDE_A, "content": [{"type": "voice_note", "text": "Yes."}]}),
    "Claude, an id twice": claude_of(
        {**CLAUDE_Q, "parent_message_uuid": "00000000-0"},
        {**CLAUDE_A, "uuid": "q", "parent_message_uuid": "q", "text": "Yes."},
    ),
    "Claude, a message twice": claude_of(
        {**CLAUDE_Q, "parent_message_uuid": "00000000-0"},
        {**CLAUDE_Q, "parent_message_uuid": "00000000-0"},
        {**CLAUDE_A, "parent_message_uuid": "q", "text": "Yes."},
    ),
    "Open WebUI, children alone": open_webui_of(WEB_Q, {"id": "a", "role": "assistant", "content": ["Yes."]}),
    "Open WebUI, a chat alone": {
        "title": "t",
        "history": {"messages": [WEB_Q, {"id": "a", "role": "assistant", "content": "Yes."}]},
    },
    "LibreChat, by sender": librechat_of(
        LIBRE_Q, {"messageId": "a", "parentMessageId": "q", "sender": "GPT", "text": "Yes."}
    ),
    "LibreChat, flags as text": librechat_of(
        {**LIBRE_Q, "isCreatedByUser": "true"},
        {"messageId": "a", "parentMessageId": "q", "isCreatedByUser": "false", "content": [None, "Yes."]},
    ),
    "LibreChat, thoughts beside the text": librechat_of(
        LIBRE_Q,
        {"messageId": "a", "parentMessageId": "q", "text": "Yes.", "content": [{"type": "think", "think": "Hm."}]},
    ),
    "LibreChat, branches": librechat_of([LIBRE_Q, {"messageId": "a", "parentMessageId": "q", "text": "Yes."}]),
    "LibreChat, without its id": {"messages": [LIBRE_Q, {"messageId": "a", "parentMessageId": "q", "text": "Yes."}]},
    "Gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Yes?"}]},
            {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Yes."}]},
        ]
    },
    "Gemini, an empty part": {
        "contents": [
            {"role": "user", "parts": [{"text": "Yes?"}]},
            {"role": "model", "parts": [{"text": ""}, {"text": "Yes."}]},
        ]
    },
    "Google AI Studio, text in pieces": {
        "chunkedPrompt": {
            "chunks": [
                {"role": "user", "text": "Yes?"},
                {"role": "model", "text": "Yes.", "parts": [{"text": "Y"}, {"text": "es."}]},
            ]
        }
    },
    "TypingMind": {
        "data": {"folders": [{"id": "f"}], "chats": [{"chatID": "1", "chatTitle": "t", "messages": LISTED}]}
    },
    "sessions by their ids": {"version": 2, "sessions": {"1": {"title": "t", "messages": LISTED}}},
    "items of OpenAI's conversations": {
        "object": "list",
        "data": [{"type": "message", **message} for message in LISTED],
    },
    "SillyTavern": [
        {"user_name": "Ann", "character_name": "Seraphina", "chat_metadata": {}},
        {"name": "Ann", "is_user": True, "is_system": False, "mes": "Yes?", "send_date": "March 1, 2025 10:01am"},
        {"name": "Seraphina", "is_user": False, "mes": "Yes.", "swipes": ["No.", "Yes."], "swipe_id": 1, "extra": {}},
    ],
    "Google's record of activity": [
        {
            "header": "Gemini Apps",
            "title": "Prompted Yes?",
            "time": "2026-03-02T09:15:00.000Z",
            "products": ["Gemini Apps"],
            "safeHtmlItem": [{"html": "<p>Ye<b>s.</b></p>"}],
        }
    ],
    "Chatbox": {"session:1": {"name": "t", "messages": [{**one, "contentParts": one["content"]} for one in LISTED]}},
    "Vercel's AI SDK": [
        {"role": role, "content": "", "parts": [{"type": "step-start"}, {"type": "text", "text": said}]}
        for role, said in QA
    ],
    "ChatGPT Exporter": {
        "metadata": {},
        "messages": [{"role": "Prompt", "say": "Yes?"}, {"role": "Response", "say": "Yes."}],
    },
    "speakers": [{"speaker": role, "text": said} for role, said in QA],
    "Google AI Studio": {
        "chunkedPrompt": {
            "chunks": [
                {"role": "user", "text": "Yes?"},
                {"role": "model", "text": "Hm.", "isThought": True},
                {"role": "model", "text": "Yes."},
            ]
        }
    },
}


@pytest.mark.parametrize("export", SHAPES.values(), ids=SHAPES)
def test_a_question_and_its_answer_are_read_in_every_shape(export: Any) -> None:
    (payload,) = read(export)
    assert spoken(payload) == QA
    assert not {kind for kind, count in payload.left_out.items() if count} - {
        "thoughts",
        "entries that are no messages",
    }


def test_a_role_play_of_several_keeps_who_speaks() -> None:
    said = [("Ann", "Who is there?"), ("Bo", "Me."), ("Cy", "Me, too.")]
    lines = [{"name": name, "is_user": name == "Ann", "is_system": False, "mes": text} for name, text in said]
    lines[2] |= {"extra": {"image": "/user/a.png", "reasoning": "Hm."}}
    (payload,) = read([{"character_name": "Bo", "chat_metadata": {}}, *lines])
    assert payload.title == "Bo"
    assert spoken(payload) == [
        ("user", "Who is there?"),
        ("assistant", "Bo: Me."),
        ("assistant", "Cy: Me, too.\n\n[Attached, not imported: file]"),
    ]
    assert payload.left_out["images and files"] == 1


def test_records_of_activity_become_a_conversation_a_day() -> None:
    record = {"header": "Gemini Apps", "products": ["Gemini Apps"]}
    days = read(
        [
            {**record, "title": "Prompted And wheat?", "time": "2026-03-03T09:00:00Z", "attachedFiles": ["a.png"]},
            {**record, "title": "Used an extension", "time": "2026-03-02T10:00:00Z"},
            {
                **record,
                "title": "Prompted Two?",
                "time": "2026-03-02T09:30:00Z",
                "safeHtmlItem": [{"html": "<ul><li>a &lt; b</li><li>c</li></ul>"}],
            },
            {**record, "title": "Prompted One?", "time": "2026-03-02T09:15:00Z"},
        ]
    )
    assert [spoken(day) for day in days] == [
        [("user", "And wheat?\n\n[Attached, not imported: file]")],
        [("user", "One?"), ("user", "Two?"), ("assistant", "- a < b\n- c")],
    ]


def test_messages_that_name_their_conversations_are_not_mixed() -> None:
    said = [{"role": "user", "content": f"{name}?", "topicId": name[0]} for name in ("a1", "b1", "a2")]
    assert [[text for _, text in spoken(one)] for one in read({"state": {"messages": said}})] == [
        ["a1?", "a2?"],
        ["b1?"],
    ]


def test_words_behind_a_result_stay_behind_it() -> None:
    call = {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "8 C"}
    parts = [{"type": "text", "text": "I look."}, call, {"type": "text", "text": "Cold."}]
    (payload,) = read([{"role": "user", "content": "Yes?"}, {"role": "assistant", "parts": parts}])
    assert spoken(payload)[1:] == [("assistant", "I look."), ("tool", "8 C"), ("assistant", "Cold.")]
    assert payload.messages[1].message.tool_calls[0].name == "weather"


def test_a_message_whose_text_is_not_found_is_counted() -> None:
    (payload,) = read([{"role": "user", "content": "Yes?"}, {"role": "assistant", "blocks": ["b1"]}])
    assert payload.left_out["messages without a text"] == 1


@pytest.mark.parametrize(
    "given",
    [
        *(1774602000, 1774602000.0, 1774602000000, 1774602000 * 10**9, "1774602000", "1774602000000"),
        *("March 27, 2026 9:00am", "2026-03-27@09h00m00s", "2026/3/27 09:00:00"),
        *("2026-03-27T09:00:00Z", {"$date": "2026-03-27T09:00:00Z"}, {"$date": {"$numberLong": "1774602000000"}}),
    ],
)
def test_times_are_read_however_they_are_written(given: Any) -> None:
    assert moment_of(given) == datetime(2026, 3, 27, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "given", [None, True, [], {}, {"$date": {"$date": []}}, "soon", "1e5", 1e300, float("nan"), -1e30]
)
def test_what_is_no_time_is_none(given: Any) -> None:
    assert moment_of(given) is None


def test_what_an_answer_holds_beside_its_text_is_taken_or_counted() -> None:
    call, result = (
        {"type": "function_call", "call_id": "c", "name": "f"},
        {"type": "function_call_output", "call_id": "c"},
    )
    web = {"id": "a", "role": "assistant", "content": "Yes.", "parentId": "q", "files": [{}], "error": {"content": "x"}}
    (payload,) = read(open_webui_of(WEB_Q, {**web, "output": [call, {**result, "output": "7"}, {"type": "new"}]}))
    assert spoken(payload) == [QA[0], ("assistant", "f"), ("tool", "7"), QA[1]]
    assert payload.left_out["errors"] == payload.left_out["images and files"] == 1
    assert payload.left_out["parts of another kind"] == 1
    function = {"name": "f", "arguments": "{}", "output": "7"}
    parts = [{"type": "tool_call", "tool_call": {"id": "c", "type": "function", "function": function}}, {"type": "new"}]
    answer = {"messageId": "a", "parentMessageId": "q", "text": "Yes.", "content": [*parts, {"type": "image_file"}]}
    (payload,) = read(librechat_of(LIBRE_Q, {**answer, "attachments": [{}]}))
    assert spoken(payload) == [QA[0], ("assistant", "f"), ("tool", "7"), QA[1]]
    assert (payload.left_out["images and files"], payload.left_out["parts of another kind"]) == (2, 1)
    (payload,) = read(
        claude_of({**CLAUDE_Q, "files_v2": [{"file_name": "p.png"}]}, {**CLAUDE_A, "content": [{"type": "x"}]})
    )
    assert "[Attached, not imported: p.png]" in spoken(payload)[0][1]
    assert payload.left_out["parts of another kind"] == 1
    asked = {
        "author": {"role": "user"},
        "content": {"parts": ["Yes?"]},
        "metadata": {"attachments": [{"name": "a.pdf"}]},
    }
    odd = {"author": {"role": "assistant"}, "content": {"content_type": "app_pairing_content", "workspaces": []}}
    (payload,) = read(chatgpt_of(("q", {"message": asked}), ("a", {"parent": "q", "message": odd}), current="a"))
    assert spoken(payload) == [("user", "Yes?\n[Attached, not imported: a.pdf]")]
    assert (payload.left_out["images and files"], payload.left_out["contents without text"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "kept", "taken"),
    [
        ('<details type="reasoning">a <details>b</details> c</details>\nYes.', "Yes.", 1),
        ('<details id="x" type="tool_calls" done="true">a</details>Yes.', "Yes.", 1),
        ("<details><summary>Mine</summary></details>", "<details><summary>Mine</summary></details>", 0),
        ('Yes.<details type="reasoning">never closed', 'Yes.<details type="reasoning">never closed', 0),
        ("</details>Yes.", "</details>Yes.", 0),
        ('<details type="reasoning">' * 30_000, '<details type="reasoning">' * 30_000, 0),
    ],
)
def test_thoughts_in_a_text_go_with_what_is_inside_of_them(text: str, kept: str, taken: int) -> None:
    (payload,) = read(open_webui_of(WEB_Q, {"id": "a", "parentId": "q", "role": "assistant", "content": text}))
    assert spoken(payload)[1:] == [("assistant", kept)]
    assert payload.left_out["thoughts and tool results in the text"] == taken


def test_messages_of_claude_stand_in_the_order_of_their_times() -> None:
    said = [{"uuid": at, "sender": "human", "text": at, "created_at": f"2026-03-01T09:0{at}:00Z"} for at in "312"]
    (payload,) = read([{"uuid": "1", "name": "t", "chat_messages": said}])
    assert [text for _, text in spoken(payload)] == ["1", "2", "3"]


def test_a_message_without_an_author_is_counted() -> None:
    export = chatgpt_chain(LINKS)
    export[0]["mapping"]["a1"]["message"]["author"] = None
    (payload,) = read(export)
    assert payload.left_out["messages without a known author"] == 1


def test_one_bad_entry_ends_only_itself() -> None:
    bad = {"title": "Bad", "mapping": {"a": {"message": {"author": {"role": ["user"]}, "content": {"parts": "x"}}}}}
    good = exports.chatgpt()[0]
    results = read(
        [bad, good, {"title": "Odd", "conversationId": 1, "messages": [{"messageId": [1], "createdAt": {}}]}]
    )
    assert [bool(one.messages) for one in results] == [False, True, False]
    listed = read({"messages": [None, {"role": "user", "content": "Hello"}, "word"]})
    assert spoken(listed[0]) == [("user", "Hello")]
    assert listed[0].left_out["entries that are no messages"] == 2


@pytest.mark.parametrize("shape", ["lines", "list"])
def test_a_file_that_breaks_off_keeps_what_came_before(shape: str) -> None:
    entry = json.dumps(exports.chatgpt()[0])
    text = f"{entry}\n{entry[:50]}\n{entry}\n" if shape == "lines" else f"[{entry}, {entry}, {entry[:50]}"
    results = list(conversations_in(io.BytesIO(text.encode()), "export.json"))
    assert sorted(bool(one.messages) for one in results) == [False, True, True]
    assert [one.problem for one in results if one.problem]


def test_citation_marks_become_links_or_go() -> None:
    cite = "\ue200cite\ue202turn0search1\ue201"
    pages = [{"title": "A [page]", "url": "https://example.org/a(b)"}, {"url": "javascript:x"}]
    node = exports.chatgpt_node(
        "a1",
        None,
        "assistant",
        exports.text(
            f'Rye rises.{cite} It \ue203sours\ue204. \ue200entity\ue202["city","Bern"]\ue201\ue200cite\ue202x\ue201 '
            "Old【4†source】【5†none】 【kept】"
        ),
        metadata={
            "content_references": [{"matched_text": cite, "items": pages}],
            "citations": [{"metadata": {"title": "Old", "url": "https://example.org/old"}}],
        },
    )
    text = node[1]["message"]["content"]["parts"][0]
    node[1]["message"]["metadata"]["citations"][0] |= {"start_ix": text.index("【4"), "end_ix": text.index("【5")}
    (payload,) = read(chatgpt_of(node, current="a1"))
    assert spoken(payload)[0][1] == (
        "Rye rises. ([A  page](https://example.org/a%28b%29)) It sours. Bern Old ([Old](https://example.org/old)) "
        "【kept】"
    )


@pytest.mark.django_db
def test_a_json_export_of_ours_is_read_as_it_was_said() -> None:
    dialog = make_dialog()
    with open_change(dialog.pk) as change:
        change.dialog.title = "Sums"
        change.turn("user", "answered", text="Add 2 and 4.")
        change.turn("assistant", "complete", tool_calls=[{"id": "c1", "name": "add", "arguments": '{"of": [2, 4]}'}])
        change.turn("tool", "ok", text="6", tool_call_id="c1", tool_name="add")
        change.turn("assistant", "complete", text="Six.", reasoning="2 and 4")
    (payload,) = read(json.loads("".join(many_as_json(dialog.owner, [dialog.pk]))))
    assert (payload.source, payload.title) == (f"dominds:{dialog.pk}", "Sums")
    assert spoken(payload) == [("user", "Add 2 and 4."), ("assistant", "add"), ("tool", "6"), ("assistant", "Six.")]
    assert payload.messages[1].message.tool_calls[0].arguments == '{"of": [2, 4]}'
    assert payload.left_out["thoughts"] == 1
    assert all(text.at for text in payload.messages)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda message: message,
        lambda message: {"messages": message},
        lambda message: [message],
        lambda message: [{"messages": message}],
    ],
)
def test_message_lists_are_read_alone_or_wrapped(wrap: Any) -> None:
    (message,) = read(wrap(exports.message_list()))
    assert message.source.startswith("messages:")
    assert spoken(message) == [
        ("user", "Read a.py.\n[Image or file, not imported]"),
        ("assistant", "read_file"),
        ("tool", "x = 1"),
        ("assistant", "It sets x."),
    ]
    assert message.left_out["instructions"] == 1


def test_calls_and_results_come_to_stand_in_pairs() -> None:
    function = {"name": "mem ory.write", "arguments": "{}"}
    (payload,) = read(
        [
            {"role": "user", "content": "Go."},
            {"role": "tool", "tool_call_id": "gone", "content": "left over"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "function": function}, {"id": "1", "function": function}],
            },
            {"role": "user", "content": "Well?"},
        ]
    )
    assert spoken(payload)[1] == ("assistant", "[Result of a tool]\nleft over")
    calls = payload.messages[2].message.tool_calls
    assert len({call.id for call in calls}) == 2
    assert {call.name for call in calls} == {"mem_ory_write"}
    assert [(answer.message.text, answer.message.tool_call_id) for answer in payload.messages[3:5]] == [
        (NO_RESULT, call.id) for call in calls
    ]
