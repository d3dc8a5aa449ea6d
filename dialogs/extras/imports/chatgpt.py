"""ChatGPT's and DeepSeek's ``conversations.json``: trees of messages, of which one path is the current one."""

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
from dialogs.extras.imports.message_lists import text_and_files
from dialogs.extras.imports.tree import Node, current_path, parents_in
from dominds.llm.messages import Role

THOUGHTS = ("thoughts", "reasoning_recap")
UNSAID = (None, "text", "code", "execution_output", "user_editable_context", "model_editable_context")  # may be empty


def recognises(item: Item) -> bool:
    return isinstance(item.get("mapping"), dict) or any(
        "author" in mapping(node.get("message")) for node in items(item.get("mapping"))
    )


def read(item: Item) -> Conversation:
    entries = by_id(item["mapping"])
    given = {name: mapping(node.get("message")) for name, node in entries.items()}
    is_deepseek = any("fragments" in message for message in given.values())
    messages = {name: _of_deepseek(message) if "fragments" in message else message for name, message in given.items()}
    parents = parents_in(entries, "parent", "children")
    nodes = [
        Node(name, parents[name], moment_of(message.get("create_time")), _speaks(message))
        for name, message in messages.items()
    ]
    path = current_path(nodes, item.get("current_node"))
    builder = Builder()
    for node in path:
        _add(builder, messages[node.name], node.name)
    followed = {node.name for node in path}
    builder.left_out["messages of other branches"] += sum(node.speaks for node in nodes if node.name not in followed)
    kind = "deepseek" if is_deepseek else "chatgpt"
    return builder.conversation(kind, item.get("conversation_id") or item.get("id"), item.get("title"))


def _of_deepseek(message: Item) -> Item:
    """Return DeepSeek's message in the form of ChatGPT's."""
    fragments = list(items(message.get("fragments")))
    kinds = [text_of(part.get("type")).lower() for part in fragments]
    said = [part.get("content") for part, kind in zip(fragments, kinds, strict=True) if kind in ("request", "response")]
    return {
        "author": "user" if "request" in kinds else "assistant",
        "create_time": message.get("inserted_at"),
        "content": {"parts": said} if said else {"content_type": THOUGHTS[0]},
        "metadata": {"attachments": message.get("files")},
    }


def _speaks(message: Item) -> bool:
    return _role(message) in ("user", "assistant") and not _is_hidden(message)


def _role(message: Item) -> str:
    author = message.get("author")
    return role_of(author) or role_of(mapping(author).get("role")) or role_of(message.get("role"))


def _is_hidden(message: Item) -> bool:
    """Check whether the message is the account's instructions or an addition of the service, which no page shows."""
    return message.get("weight") == 0 or bool(
        mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    )


def _add(builder: Builder, message: Item, name: str) -> None:
    role, content = _role(message), message.get("content")
    kind = mapping(content).get("content_type")
    if role not in ("user", "assistant", "tool"):
        builder.left_out["messages without a known author"] += bool(message) and role != "system"
        return
    if kind in THOUGHTS:
        builder.left_out["thoughts"] += 1
        return
    about = mapping(message.get("metadata"))
    text, at = _text(builder, content, list(items(about.get("attachments")))), moment_of(message.get("create_time"))
    text = without_marks(text, about)
    to = text_of(message.get("recipient")) or "all"
    if role == "tool":
        builder.result(text, at=at)
    elif _is_hidden(message):
        builder.left_out["hidden messages"] += bool(text.strip())
    elif role == "assistant" and to != "all":
        builder.call("", [(name, to, json_text({"input": text}))], at)
    else:
        builder.say(Role(role), text, at)


def _text(builder: Builder, given: object, attached: list[Item]) -> str:
    """Return the text of any content: parts of a message, a program, its output, or a quoted page."""
    content = mapping(given)
    if isinstance(content.get("parts"), list):
        parts = [part for part in content["parts"] if part]
        shown = [_part(builder, part) for part in parts]
        if all(isinstance(part, str) for part in parts):  # otherwise the attached pictures are among the parts
            builder.left_out["images and files"] += len(attached)
            shown += [f"[Attached, not imported: {text_of(file.get('name')) or 'file'}]" for file in attached]
        return "\n".join(text for text in shown if text)
    if not content:
        return text_and_files(builder, given)
    result = text_of(content.get("text")) or text_of(content.get("result"))
    title = text_of(content.get("title"))
    builder.left_out["contents without text"] += not result and content.get("content_type") not in UNSAID
    return f"{title}\n{result}" if title and result else result


def _part(builder: Builder, part: object) -> str:
    if isinstance(part, str):
        return part
    inner = mapping(part)
    if text := text_of(inner.get("text")):  # a voice message, in words
        return text
    builder.left_out["images and files"] += 1
    return "[Image or file, not imported]"
