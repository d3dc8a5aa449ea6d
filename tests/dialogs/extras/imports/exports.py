"""Exports of other chats, as their services give them, and how tests read them. What is said in them is invented."""

import io
import json
from typing import Any

from dialogs.extras.imports.conversation import Conversation
from dialogs.extras.imports.files import conversations_in

Node = dict[str, Any]


def chatgpt_node(name: str, parent: str | None, role: str, content: Node, **message: Any) -> tuple[str, Node]:
    message_node = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1756000000.5,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
    }
    return name, {"id": name, "message": message_node | message, "parent": parent, "children": []}


def text(*parts: Any, kind: str = "text") -> Node:
    return {"content_type": kind, "parts": list(parts)}


def chatgpt() -> list[Node]:
    """A regenerated answer, hidden instructions, thoughts, a run of Python, a picture."""
    nodes = [
        ("root", {"id": "root", "message": None, "parent": None, "children": ["context"]}),
        chatgpt_node(
            "context",
            "root",
            "user",
            {"content_type": "user_editable_context", "user_profile": "A baker.", "user_instructions": "Be short."},
            metadata={"is_visually_hidden_from_conversation": True},
        ),
        chatgpt_node(
            "q1",
            "context",
            "user",
            text(
                {"content_type": "image_asset_pointer", "asset_pointer": "sediment://1"},
                "How many rolls fit on this tray?",
                kind="multimodal_text",
            ),
        ),
        chatgpt_node("old", "q1", "assistant", text("About fifty.")),
        chatgpt_node(
            "thoughts", "q1", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Counting"}]}
        ),
        chatgpt_node(
            "run",
            "thoughts",
            "assistant",
            {"content_type": "code", "language": "python", "text": "6 * 8"},
            recipient="python",
        ),
        chatgpt_node("ran", "run", "tool", {"content_type": "execution_output", "text": "48"}),
        chatgpt_node("a1", "ran", "assistant", text("Six rows of eight: 48.")),
        chatgpt_node("q2", "a1", "user", text("And on two trays?")),
    ]
    return [
        {
            "title": "Rolls on a tray",
            "create_time": 1756000000.1,
            "update_time": 1756000400.6,
            "mapping": dict(nodes),
            "moderation_results": [],
            "current_node": "q2",
            "conversation_id": "6b0f-1",
            "id": "6b0f-1",
            "default_model_slug": "gpt-5",
        },
        {"title": "Broken", "conversation_id": "6b0f-2", "id": "6b0f-2"},
    ]


def claude() -> list[Node]:
    """An attachment with its text, one without, two calls at once, thinking."""
    asked = {
        "uuid": "m1",
        "text": "Sum up the list.",
        "sender": "human",
        "created_at": "2026-03-01T09:00:00.123456Z",
        "content": [{"type": "text", "text": "Sum up the list.", "citations": []}],
        "attachments": [{"file_name": "list.txt", "file_size": 9, "file_type": "txt", "extracted_content": "1\n2\n3"}],
        "files": [{"file_name": "photo.png"}],
    }
    answer = {
        "uuid": "m2",
        "text": "",
        "sender": "assistant",
        "created_at": "2026-03-01T09:00:09.5Z",
        "attachments": [],
        "files": [],
        "content": [
            {"type": "thinking", "thinking": "Three numbers."},
            {"type": "text", "text": "I add them."},
            {"type": "tool_use", "id": "toolu_1", "name": "repl", "input": {"code": "1+2+3"}},
            {"type": "tool_use", "id": "toolu_2", "name": "web_search", "input": {"query": "sum"}},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [{"type": "text", "text": "A sum is a total."}],
            },
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "6"}]},
            {"type": "text", "text": "The sum is 6."},
        ],
    }
    return [
        {
            "uuid": "c-1",
            "name": "",
            "created_at": "2026-03-01T09:00:00Z",
            "account": {},
            "chat_messages": [asked, answer],
        }
    ]


def open_webui() -> list[Node]:
    messages = {
        "u1": {
            "id": "u1",
            "parentId": None,
            "childrenIds": ["a0", "a1"],
            "role": "user",
            "content": "Weather in Bern?",
            "timestamp": 1700001000,
        },
        "a0": {"id": "a0", "parentId": "u1", "childrenIds": [], "role": "assistant", "content": "No idea."},
        "a1": {
            "id": "a1",
            "parentId": "u1",
            "childrenIds": ["u2"],
            "role": "assistant",
            "model": "m",
            "timestamp": 1700001020,
            "content": '<details type="tool_calls"><summary>Done</summary></details>Rain, 8 degrees.',
            "output": [
                {"type": "reasoning", "content": [{"type": "output_text", "text": "Look it up."}]},
                {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city": "Bern"}'},
                {
                    "type": "function_call_output",
                    "call_id": "call_1",
                    "output": [{"type": "input_text", "text": "8 C, rain"}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Rain, 8 degrees."}],
                },
            ],
        },
        "u2": {"id": "u2", "parentId": "a1", "childrenIds": ["a2"], "role": "user", "content": "And tomorrow?"},
        "a2": {
            "id": "a2",
            "parentId": "u2",
            "childrenIds": [],
            "role": "assistant",
            "content": '<details type="reasoning" done="true"><summary>Thought</summary>&gt; hm</details>\nSun.',
        },
    }
    chat = {"title": "Weather", "models": ["m"], "history": {"currentId": "a2", "messages": messages}}
    return [
        {"id": "w-1", "user_id": "u", "title": "Weather", "chat": chat, "created_at": 1700001000, "archived": False}
    ]


def librechat() -> Node:
    """A tree with two answers to one question; the newest leads on."""

    def message_node(name: str, by_user: bool, at: str, text: str, *children: Node, **more: Any) -> Node:
        return {
            "messageId": name,
            "conversationId": "l-1",
            "createdAt": f"2026-04-09T14:{at}.000Z",
            "isCreatedByUser": by_user,
            "sender": "user" if by_user else "GPT",
            "text": text,
            "error": False,
            "children": list(children),
        } | more

    call = {"id": "call_9", "name": "calculator", "args": '{"input": "6*7"}', "output": "42", "type": "tool_call"}
    parts = [
        {"type": "think", "think": "easy"},
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": {"value": "It is 42."}},
    ]
    newer = message_node("a2", False, "33:00", "", message_node("q2", True, "34:00", "Thanks."), content=parts)
    first = message_node("q1", True, "32:00", "What is 6*7?", message_node("a1", False, "32:05", "41."), newer)
    first["parentMessageId"] = "00000000-0000-0000-0000-000000000000"
    return {
        "conversationId": "l-1",
        "endpoint": "openAI",
        "title": "Sums",
        "branches": True,
        "recursive": True,
        "options": {"model": "gpt"},
        "messagesTree": [first],
    }


def message_list() -> list[Node]:
    return [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Read a.py."}, {"type": "image_url", "image_url": {"url": "data:"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "x = 1"},
        {"role": "assistant", "content": "It sets x."},
    ]


def grok() -> Node:
    """An answer that was made twice, of which the newer one went on."""
    said = [
        ("q", None, "human", "Weather in Bern?"),
        ("old", "q", "ASSISTANT", "I cannot know."),
        ("a", "q", "assistant", "Rain, 8 degrees."),
        ("more", "a", "human", "And tomorrow?"),
    ]
    responses = [
        {
            "response": {
                "_id": name,
                "parent_response_id": parent,
                "sender": sender,
                "message": message,
                "create_time": {"$date": {"$numberLong": str(1756000000000 + number * 1000)}},
                "file_attachments": ["f-1"] if name == "more" else [],
                "agent_thinking_traces": [{"thinking": "Clouds"}] if name == "a" else [],
            },
            "share_link": None,
        }
        for number, (name, parent, sender, message) in enumerate(said)
    ]
    return {"conversations": [{"conversation": {"id": "g-1", "title": "Weather"}, "responses": responses}]}


def llama_cpp() -> Node:
    said: list[tuple[str, str | None, Node]] = [
        ("root", None, {"type": "root", "role": "system", "content": ""}),
        ("q", "root", {"role": "user", "content": "Weather in Bern?"}),
        ("old", "q", {"role": "assistant", "content": "I cannot know."}),
        (
            "call",
            "q",
            {
                "role": "assistant",
                "content": "",
                "reasoningContent": "I look.",
                "toolCalls": '[{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]',
            },
        ),
        ("result", "call", {"role": "tool", "content": "8 C", "toolCallId": "c1"}),
        ("a", "result", {"role": "assistant", "content": "Rain, 8 degrees."}),
    ]
    messages = [
        {"id": name, "convId": "l-1", "type": "text", "timestamp": 1756000000000 + number, "parent": parent, **more}
        for number, (name, parent, more) in enumerate(said)
    ]
    return {"conv": {"id": "l-1", "name": "Weather", "currNode": "a"}, "messages": messages}


def lm_studio() -> Node:
    call = {"callId": 7, "toolCallRequestId": "c1", "name": "weather"}
    steps = [
        {"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": "I look."}]},
        {"type": "contentBlock", "content": [{"type": "toolCallRequest", **call, "parameters": {}}]},
        {"type": "toolStatus", "callId": 7, "statusState": {}},
        {"type": "contentBlock", "content": [{"type": "toolCallResult", **call, "content": "8 C"}]},
        {"type": "contentBlock", "content": [{"type": "text", "text": "Rain, 8 degrees."}]},
        {"type": "debugInfoBlock", "debugInfo": "x"},
    ]
    asked = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Weather in Bern?"}]}
    return {
        "name": "Weather",
        "messages": [
            {"versions": [{**asked, "content": []}, asked], "currentlySelected": 1},
            {"versions": [{"type": "multiStep", "role": "assistant", "steps": steps}], "currentlySelected": 0},
        ],
    }


def jan() -> list[Node]:
    call = {"type": "tool_call", "tool_call_id": "c1", "tool_name": "weather", "input": {}, "output": "8 C"}
    parts = [("user", _value("Weather in Bern?")), ("assistant", call), ("assistant", _value("Rain, 8 degrees."))]
    return [{"object": "thread.message", "thread_id": "t", "role": role, "content": [part]} for role, part in parts]


def _value(said: str) -> Node:
    return {"type": "text", "text": {"value": said, "annotations": []}}


def gemini_cli() -> list[Node]:
    """A message is written anew with its calls, and another one was taken back."""
    response = {"functionResponse": {"id": "c1", "name": "weather", "response": {"output": "8 C"}}}
    call = {"id": "c1", "name": "weather", "args": {}, "result": [response], "status": "success"}
    answer = {"id": "a1", "type": "gemini", "content": "", "thoughts": [{"subject": "Weather"}]}
    return [
        {"sessionId": "s-1", "projectHash": "h", "messages": []},
        {"id": "i", "type": "info", "content": "Update available."},
        {"id": "q1", "type": "user", "content": [{"text": "Weather in Bern?"}], "timestamp": "2026-11-01T10:00:00Z"},
        answer,
        {**answer, "toolCalls": [call]},
        {"id": "wrong", "type": "user", "content": "Never mind."},
        {"$rewindTo": "wrong"},
        {"$set": {"summary": "Weather"}},
        {"id": "a2", "type": "gemini", "content": "Rain, 8 degrees."},
    ]


def claude_code() -> list[Node]:
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "8 C"}]}
    said: list[tuple[str, Any]] = [
        ("user", "Weather in Bern?"),
        ("assistant", [{"type": "thinking", "thinking": "I look."}]),
        ("assistant", [call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": "Rain, 8 degrees."}]),
    ]
    lines = [{"type": role, "uuid": role, "message": {"role": role, "content": content}} for role, content in said]
    aside = {**lines[0], "isSidechain": True}
    return [{"type": "summary", "summary": "Weather"}, *lines, aside]


def codex() -> list[Node]:
    call = {"type": "function_call", "name": "weather", "arguments": "{}", "call_id": "c1"}
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather in Bern?"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "8 C"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain, 8 degrees."}]},
    ]
    event = {"type": "event_msg", "payload": {"type": "agent_message", "message": "Rain, 8 degrees."}}
    meta = {"type": "session_meta", "payload": {"id": "s-1", "cwd": "/"}}
    return [meta, *({"type": "response_item", "payload": item} for item in items), event]


def read(content: Any) -> list[Conversation]:
    return list(conversations_in(io.BytesIO(json.dumps(content).encode()), "export.json"))


def spoken(payload: Conversation) -> list[tuple[str, str]]:
    return [
        (answer.message.role.value, answer.message.text or " ".join(call.name for call in answer.message.tool_calls))
        for answer in payload.messages
    ]
