"""Claude's ``conversations.json``. Each conversation is a list of messages made of blocks."""

from datetime import UTC, datetime

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Item,
    entries_by_name,
    items,
    json_text,
    moment_of,
    role_of,
    text_of,
)
from dialogs.extras.imports.tree import Node, current_path
from dominds.llm.messages import Role


def recognises(item: Item) -> bool:
    return isinstance(item.get("chat_messages"), list)


def read(item: Item) -> Conversation:
    builder = Builder()
    for message in _path(item, builder):
        at = moment_of(message.get("created_at"))
        if role_of(message.get("sender")) == "assistant":
            _add_answer(builder, message, at)
        else:
            builder.say(Role.USER, _asked_text(builder, message), at)
    return builder.conversation("claude", item.get("uuid"), item.get("name"))


def _path(item: Item, builder: Builder) -> list[Item]:
    """Return the messages by time. If they name their parents, return only those that lead to the current one.

    If some messages name a parent, the others follow the message before them in the list.
    """
    messages = list(items(item["chat_messages"]))
    if not any(message.get("parent_message_uuid") for message in messages):
        times = [moment_of(message.get("created_at")) for message in messages]
        in_order = sorted(range(len(messages)), key=lambda at: times[at] or datetime.max.replace(tzinfo=UTC))
        return messages if None in times else [messages[at] for at in in_order]
    by_name = entries_by_name(
        (text_of(message.get("uuid")) or f"message {at}", message) for at, message in enumerate(messages)
    )
    nodes = [
        Node(name, message.get("parent_message_uuid") or before, moment_of(message.get("created_at")))
        for (name, message), before in zip(by_name.items(), [None, *by_name], strict=False)
    ]
    path = current_path(nodes, item.get("current_leaf_message_uuid"))
    builder.left_out["messages of other branches"] += len(nodes) - len(path)
    return [by_name[node.name] for node in path]


def _asked_text(builder: Builder, message: Item) -> str:
    """Return the words of a person, followed by the texts of attachments."""
    blocks = [text_of(block.get("text")) for block in _blocks(message)]
    parts = ["\n".join(text for text in blocks if text)]
    known = set()
    for attached in items(message.get("attachments")):
        name, content = text_of(attached.get("file_name")) or "file", text_of(attached.get("extracted_content"))
        known.add(name)
        if content:
            parts.append(f"[Attached: {name}]\n{content}")
        else:
            builder.left_out["images and files"] += 1
            parts.append(f"[Attached, not imported: {name}]")
    for file in (*items(message.get("files")), *items(message.get("files_v2"))):
        if (name := text_of(file.get("file_name")) or "file") not in known:
            known.add(name)
            builder.left_out["images and files"] += 1
            parts.append(f"[Attached, not imported: {name}]")
    return "\n\n".join(part for part in parts if part.strip())


def _add_answer(builder: Builder, message: Item, at: datetime | None) -> None:
    texts: list[str] = []
    for block in _blocks(message):
        match block.get("type"):
            case "tool_use":
                call = (text_of(block.get("id")), text_of(block.get("name")), json_text(block.get("input") or {}))
                builder.call(_take_texts(texts), [call], at)
            case "tool_result":
                builder.say(Role.ASSISTANT, _take_texts(texts), at)
                builder.result(_result(builder, block), text_of(block.get("tool_use_id")), at)
            case "thinking" | "redacted_thinking":
                builder.left_out["thoughts"] += 1
            case kind if (text := text_of(block.get("text"))) or kind == "text":  # any other kind that holds words
                texts.append(text)
            case _:
                builder.left_out["parts of another kind"] += 1
    builder.say(Role.ASSISTANT, _take_texts(texts), at)


def _blocks(message: Item) -> list[Item]:
    content = message.get("content")
    blocks = list(items(content))
    return blocks or [{"type": "text", "text": text_of(content) or text_of(message.get("text"))}]


def _take_texts(texts: list[str]) -> str:
    """Return the texts since the last call, and empty their list."""
    text = "\n\n".join(filter(None, texts))
    texts.clear()
    return text


def _result(builder: Builder, block: Item) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    texts = []
    for part in items(content):
        if not (text := text_of(part.get("text"))):
            builder.left_out["images and files"] += 1
            text = f"[{text_of(part.get('type')) or 'part'}, not imported]"
        texts.append(text)
    return "\n".join(texts)
