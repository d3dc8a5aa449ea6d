"""Exports of other chats, in the shapes that their services give them. What is said in them is invented."""

from typing import Any

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
