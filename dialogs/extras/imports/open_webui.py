"""Open WebUI's export. The ``history`` of a chat is a tree of messages, of which one path is the current one."""

import re

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Item,
    by_id,
    items,
    json_text,
    mapping,
    moment_of,
    role_of,
    text_of,
)
from dialogs.extras.imports.message_lists import text_and_files
from dialogs.extras.imports.tree import Node, current_path
from dominds.llm.messages import Role

DETAILS = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)".*?</details>\s*', re.S)
CLOSING = "</details>"


def recognises(item: Item) -> bool:
    chat = mapping(item.get("chat"))
    return isinstance(mapping(chat.get("history")).get("messages"), dict | list) or isinstance(
        chat.get("messages"), list
    )


def read(item: Item) -> Conversation:
    chat = mapping(item["chat"])
    builder = Builder()
    for message in _path(chat, builder):
        at = moment_of(message.get("timestamp"))
        if role_of(message.get("role")) == "assistant":
            _add_answer(builder, message)
        elif role_of(message.get("role")) == "user":
            builder.left_out["images and files"] += len(list(items(message.get("files"))))
            builder.say(Role.USER, text_and_files(builder, message.get("content")), at)
        else:
            builder.left_out["instructions"] += 1
    return builder.conversation("open-webui", item.get("id"), item.get("title") or chat.get("title"))


def _path(chat: Item, builder: Builder) -> list[Item]:
    history = mapping(chat.get("history"))
    messages = by_id(history.get("messages"))
    nodes = [
        Node(name, one.get("parentId"), moment_of(one.get("timestamp")), speaks=bool(one.get("role")))
        for name, one in messages.items()
    ]
    path = [node for node in current_path(nodes, history.get("currentId")) if node.speaks]
    if not path:
        return list(items(chat.get("messages")))
    builder.left_out["messages of other branches"] += sum(node.speaks for node in nodes) - len(path)
    return [messages[node.name] for node in path]


def _add_answer(builder: Builder, message: Item) -> None:
    """Add an answer by its ``output``, with calls and results apart. Older exports have both in the text alone."""
    at = moment_of(message.get("timestamp"))
    output = list(items(message.get("output")))
    if not any(part.get("type") == "message" for part in output):
        text = text_and_files(builder, message.get("content"))
        text, taken = _without_details(text)
        builder.left_out["thoughts and tool results in the text"] += taken
        builder.say(Role.ASSISTANT, text, at)
        return
    for part in output:
        match part.get("type"):
            case "message":
                builder.say(Role.ASSISTANT, text_and_files(builder, part.get("content")), at)
            case "function_call":
                given = text_of(part.get("call_id"))
                builder.call("", [(given, text_of(part.get("name")), json_text(part.get("arguments") or "{}"))], at)
            case "function_call_output":
                text = text_and_files(builder, part.get("output"))
                builder.result(text, text_of(part.get("call_id")), at)
            case "reasoning":
                builder.left_out["thoughts"] += 1


def _without_details(text: str) -> tuple[str, int]:
    """Remove details, and count them.

    Nothing is searched after the last closing tag, since every opening tag there would be followed to the end of the
    text.
    """
    head, closing, tail = text.rpartition(CLOSING)
    space = len(tail) - len(tail.lstrip())
    kept, taken = DETAILS.subn("", head + closing + tail[:space])
    return kept + tail[space:], taken
