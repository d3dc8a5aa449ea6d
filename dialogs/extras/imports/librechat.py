"""LibreChat's export of one conversation: a tree in ``messagesTree``, or a list with parents in ``messages``."""

from collections.abc import Iterator
from datetime import datetime

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Item,
    entries_by_name,
    items,
    json_text,
    mapping,
    moment_of,
    role_of,
    text_of,
)
from dialogs.extras.imports.tree import Node, current_path
from dominds.llm.messages import Role


def recognises(item: Item) -> bool:
    if "conversationId" in item:
        return bool({"messagesTree", "messages"} & item.keys())
    return any("messageId" in message for message in items(item.get("messages")))


def read(item: Item) -> Conversation:
    builder = Builder()
    flat = _flat(item.get("messagesTree") or item.get("messages"))
    messages = entries_by_name(
        (text_of(message.get("messageId")) or f"message {place}", message) for place, message in enumerate(flat)
    )
    nodes = [
        Node(name, message.get("parentMessageId"), moment_of(message.get("createdAt")))
        for name, message in messages.items()
    ]
    path = current_path(nodes)
    builder.left_out["messages of other branches"] += len(nodes) - len(path)
    for node in path:
        _add(builder, messages[node.name])
    return builder.conversation("librechat", item.get("conversationId"), item.get("title"))


def _flat(messages: object) -> Iterator[Item]:
    """Yield every message of a tree, or of lists of trees. It does not recurse, since a long conversation is deep."""
    entries = messages if isinstance(messages, list) else []
    waiting = [message for entry in entries for message in items(entry if isinstance(entry, list) else [entry])][::-1]
    while waiting:
        message = waiting.pop()
        yield message
        below = items(message.get("children"))
        waiting += [{"parentMessageId": message.get("messageId"), **child} for child in below][::-1]


def _add(builder: Builder, message: Item) -> None:
    at = moment_of(message.get("createdAt"))
    for name in ("files", "attachments"):
        builder.left_out["images and files"] += len(list(items(message.get(name))))
    parts, text = _parts(message.get("content")), text_of(message.get("text"))
    spoken = [said for part in parts if (said := _text(part))]
    if message.get("error"):
        builder.left_out["errors"] += 1
    elif _is_users(message):
        builder.say(Role.USER, text or "\n".join(spoken), at)
    else:
        for part in parts:
            _add_part(builder, part, at)
        if not spoken:
            builder.say(Role.ASSISTANT, text, at)


def _is_users(message: Item) -> bool:
    given = message.get("isCreatedByUser")
    if given is None:
        return role_of(message.get("role") or message.get("sender")) in ("user", "you", "human")
    return given is True or role_of(given) == "true"


def _parts(content: object) -> list[Item]:
    parts = content if isinstance(content, list) else [content]
    return list(items([{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]))


def _add_part(builder: Builder, part: Item, at: datetime | None) -> None:
    kind = text_of(part.get("type"))
    if kind == "tool_call" and (call := mapping(part.get("tool_call"))):
        function = mapping(call.get("function")) or call  # the form of OpenAI's Assistants API
        given, arguments = text_of(call.get("id")), function.get("args") or function.get("arguments") or "{}"
        builder.call("", [(given, text_of(function.get("name")), json_text(arguments))], at)
        builder.result(json_text(call.get("output") or function.get("output") or ""), given, at)
    elif kind == "think":
        builder.left_out["thoughts"] += 1
    elif text := _text(part):
        builder.say(Role.ASSISTANT, text, at)
    elif kind != "text":
        is_file = "image" in kind or "file" in kind
        builder.left_out["images and files" if is_file else "parts of another kind"] += 1


def _text(part: Item) -> str:
    result = part.get("text")
    return text_of(result) or text_of(mapping(result).get("value"))
