"""Lists of messages in the form of OpenAI's chat completions, alone or under ``messages``."""

from dialogs.extras.imports.conversation import Builder, Conversation, Item, items, json_text, mapping, role_of, text_of
from dominds.llm.messages import Role


def recognises(item: Item) -> bool:
    messages = item.get("messages")
    return isinstance(messages, list) and any(map(_is_message, messages))


def _is_message(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("role"), str)


def read(item: Item) -> Conversation:
    builder = Builder()
    messages = [message for message in items(item["messages"]) if _is_message(message)]
    builder.left_out["entries that are no messages"] += len(item["messages"]) - len(messages)
    for message in messages:
        text = text_and_files(builder, message.get("content"))
        match role_of(message["role"]):
            case "system" | "developer":
                builder.left_out["instructions"] += 1
            case "tool" | "function":
                builder.result(text, text_of(message.get("tool_call_id")) or text_of(message.get("name")))
            case "assistant" | "model" if calls := _calls(message):
                builder.call(text, calls)
            case "assistant" | "model":
                builder.say(Role.ASSISTANT, text)
            case _:
                builder.say(Role.USER, text)
    return builder.conversation("messages", item.get("id"), item.get("title"))


def _calls(message: Item) -> list[tuple[str, str, str]]:
    results = list(items(message.get("tool_calls")))
    if old := mapping(message.get("function_call")):
        results.append({"id": old.get("name"), "function": old})
    functions = [(text_of(call.get("id")), mapping(call.get("function") or call)) for call in results]
    return [
        (given, text_of(function.get("name")), json_text(function.get("arguments") or "{}"))
        for given, function in functions
    ]


def text_and_files(builder: Builder, content: object) -> str:
    """Return a message's text. Other parts, such as images, are counted and marked in it."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        text = part if isinstance(part, str) else text_of(mapping(part).get("text"))
        if not text and mapping(part).get("type") not in ("text", "input_text", "output_text"):
            builder.left_out["images and files"] += 1
            text = "[Image or file, not imported]"
        texts.append(text)
    return "\n".join(text for text in texts if text)
