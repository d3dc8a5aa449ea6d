"""LibreChat's export of one conversation: a tree in ``messagesTree``, or a list with parents in ``messages``."""

from collections.abc import Iterator

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Item,
    items,
    json_text,
    mapping,
    moment_of,
    text_of,
)
from dialogs.extras.imports.tree import Node, current_path
from dominds.llm.messages import Role


def recognises(item: Item) -> bool:
    return "conversationId" in item and bool({"messagesTree", "messages"} & item.keys())


def read(item: Item) -> Conversation:
    builder = Builder()
    messages = {
        text_of(message.get("messageId")) or f"message {place}": message
        for place, message in enumerate(_flat(item.get("messagesTree") or item.get("messages")))
    }
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
    """Return every message of a tree, without recursion: a long conversation is a deep tree."""
    waiting = list(items(messages))[::-1]
    while waiting:
        message = waiting.pop()
        yield message
        below = items(message.get("children"))
        waiting += [{"parentMessageId": message.get("messageId"), **child} for child in below][::-1]


def _add(builder: Builder, message: Item) -> None:
    at = moment_of(message.get("createdAt"))
    builder.left_out["images and files"] += len(list(items(message.get("files"))))
    if message.get("error"):
        builder.left_out["errors"] += 1
    elif message.get("isCreatedByUser"):
        builder.say(Role.USER, text_of(message.get("text")) or "\n".join(_texts(message)), at)
    elif not list(items(message.get("content"))):
        builder.say(Role.ASSISTANT, text_of(message.get("text")), at)
    else:
        for part in items(message["content"]):
            match part.get("type"):
                case "tool_call":
                    call = mapping(part.get("tool_call"))
                    given = text_of(call.get("id"))
                    builder.call("", [(given, text_of(call.get("name")), json_text(call.get("args") or "{}"))], at)
                    builder.result(json_text(call.get("output") or ""), given, at)
                case "think":
                    builder.left_out["thoughts"] += 1
                case _:
                    builder.say(Role.ASSISTANT, _text(part), at)


def _texts(message: Item) -> Iterator[str]:
    return (text for part in items(message.get("content")) if (text := _text(part)))


def _text(part: Item) -> str:
    result = part.get("text")
    return text_of(result) or text_of(mapping(result).get("value"))
