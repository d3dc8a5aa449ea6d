"""ChatGPT's ``conversations.json``. Each conversation is a tree of messages, of which one path is the current one."""

from dialogs.extras.imports.citations import without_marks
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
from dialogs.extras.imports.tree import Node, current_path
from dominds.llm.messages import Role

THOUGHTS = ("thoughts", "reasoning_recap")


def recognises(item: Item) -> bool:
    return isinstance(item.get("mapping"), dict) or any(
        "author" in mapping(one.get("message")) for one in items(item.get("mapping"))
    )


def read(item: Item) -> Conversation:
    entries = by_id(item["mapping"])
    messages = {name: mapping(node.get("message")) for name, node in entries.items()}
    nodes = [
        Node(name, entries[name].get("parent"), moment_of(message.get("create_time")), _speaks(message))
        for name, message in messages.items()
    ]
    path = current_path(nodes, item.get("current_node"))
    builder = Builder()
    for node in path:
        _add(builder, messages[node.name], node.name)
    followed = {node.name for node in path}
    builder.left_out["messages of other branches"] += sum(node.speaks for node in nodes if node.name not in followed)
    return builder.conversation("chatgpt", item.get("conversation_id") or item.get("id"), item.get("title"))


def _speaks(message: Item) -> bool:
    return role_of(mapping(message.get("author")).get("role")) in ("user", "assistant") and not _is_hidden(message)


def _is_hidden(message: Item) -> bool:
    """Check for the account's instructions, and for the service's own additions."""
    return message.get("weight") == 0 or bool(
        mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    )


def _add(builder: Builder, message: Item, name: str) -> None:
    role, content = role_of(mapping(message.get("author")).get("role")), mapping(message.get("content"))
    kind = content.get("content_type")
    if role not in ("user", "assistant", "tool"):
        builder.left_out["messages without a known author"] += bool(message) and role != "system"
        return
    if kind in THOUGHTS:
        builder.left_out["thoughts"] += 1
        return
    text, at = _text(builder, content), moment_of(message.get("create_time"))
    text = without_marks(text, mapping(message.get("metadata")))
    to = text_of(message.get("recipient")) or "all"
    if role == "tool":
        builder.result(text, at=at)
    elif _is_hidden(message):
        builder.left_out["hidden messages"] += bool(text.strip())
    elif role == "assistant" and to != "all":
        builder.call("", [(name, to, json_text({"input": text}))], at)
    else:
        builder.say(Role(role), text, at)


def _text(builder: Builder, content: Item) -> str:
    """Return the text of any content: parts of a message, a program, its output, or a quoted page."""
    if isinstance(content.get("parts"), list):
        texts = [_part(builder, part) for part in content["parts"]]
        return "\n".join(text for text in texts if text)
    result = text_of(content.get("text")) or text_of(content.get("result"))
    title = text_of(content.get("title"))
    return f"{title}\n{result}" if title and result else result


def _part(builder: Builder, part: object) -> str:
    if isinstance(part, str):
        return part
    inner = mapping(part)
    if text := text_of(inner.get("text")):  # a voice message, in words
        return text
    builder.left_out["images and files"] += 1
    return "[Image or file, not imported]"
