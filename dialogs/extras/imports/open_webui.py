"""Open WebUI's export. The ``history`` of a chat is a tree of messages, of which one path is the current one."""

import re

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Item,
    by_id,
    image_in,
    items,
    json_text,
    mapping,
    moment_of,
    role_of,
    text_of,
)
from dialogs.extras.imports.message_lists import text_and_files
from dialogs.extras.imports.tree import Node, current_path, parents_in
from dominds.llm.messages import Role

TAG = re.compile(r"<details\b[^>]*>|</details>\s*")
ABOUT = re.compile(r"\btype=\"(reasoning|tool_calls|code_interpreter)\"")


def recognises(item: Item) -> bool:
    chat = _chat(item)
    return isinstance(mapping(chat.get("history")).get("messages"), dict | list) or isinstance(
        chat.get("messages"), list
    )


def _chat(item: Item) -> Item:
    return mapping(item.get("chat")) or (item if "history" in item else {})


def read(item: Item) -> Conversation:
    chat = _chat(item)
    builder = Builder()
    for message in _path(chat, builder):
        at = moment_of(message.get("timestamp"))
        if role_of(message.get("role")) == "assistant":
            _add_answer(builder, message)
        elif role_of(message.get("role")) == "user":
            files = list(items(message.get("files")))
            images = list(filter(None, map(image_in, files)))
            builder.left_out["images and files"] += len(files) - len(images)
            text = text_and_files(builder, message.get("content"), images)
            builder.say(Role.USER, text, at, images)
        elif role_of(message.get("role")) == "tool":
            builder.result(text_and_files(builder, message.get("content")), at=at)
        else:
            builder.left_out["instructions"] += 1
    return builder.conversation("open-webui", item.get("id"), item.get("title") or chat.get("title"))


def _path(chat: Item, builder: Builder) -> list[Item]:
    history = mapping(chat.get("history"))
    messages = by_id(history.get("messages"))
    parents = parents_in(messages, "parentId", "childrenIds")
    nodes = [
        Node(name, parents[name], moment_of(message.get("timestamp")), speaks=bool(message.get("role")))
        for name, message in messages.items()
    ]
    path = [node for node in current_path(nodes, history.get("currentId")) if node.speaks]
    if not path:
        return list(items(chat.get("messages")))
    builder.left_out["messages without a known author"] += sum(
        bool(message.get("content")) and not message.get("role") for message in messages.values()
    )
    builder.left_out["messages of other branches"] += sum(node.speaks for node in nodes) - len(path)
    return [messages[node.name] for node in path]


def _add_answer(builder: Builder, message: Item) -> None:
    """Add an answer from its ``output``, which has calls and results apart. Older exports have both in the text."""
    at = moment_of(message.get("timestamp"))
    output = list(items(message.get("output")))
    builder.left_out["images and files"] += len(list(items(message.get("files"))))
    builder.left_out["errors"] += bool(message.get("error"))
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
            case _:
                builder.left_out["parts of another kind"] += 1
    if not any(part.get("type") == "message" for part in output):
        text, taken = _without_details(text_and_files(builder, message.get("content")))
        builder.left_out["thoughts and tool results in the text"] += taken
        builder.say(Role.ASSISTANT, text, at)


def _without_details(text: str) -> tuple[str, int]:
    """Remove the elements with thoughts and calls, nested ones included, and count them. An element that is not closed
    stays.
    """
    kept, taken = [], 0
    at = begin = depth = 0  # the end of the last removed element; the begin of an open one, and the depth within it
    for tag in TAG.finditer(text):
        is_end = tag[0].startswith("</")
        if not depth and (is_end or not ABOUT.search(tag[0])):
            continue
        if not depth:
            begin = tag.start()
        depth += -1 if is_end else 1
        if not depth:
            kept.append(text[at:begin])
            at, taken = tag.end(), taken + 1
    return "".join(kept) + text[at:], taken
