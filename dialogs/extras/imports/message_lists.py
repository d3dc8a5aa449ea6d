"""Lists of messages, alone or under ``messages``: in the form of OpenAI's chat completions, or of other protocols of
model servers, with calls and results as blocks or items. ShareGPT's and Gemini's names for the fields are known, too,
and the prompts that Google AI Studio saves.
"""

from typing import Any

from dialogs.extras.imports.conversation import Builder, Conversation, Item, items, json_text, mapping, role_of, text_of
from dominds.llm.messages import Role

TEXTS = ("text", "input_text", "output_text")
CALLS = ("function_call", "custom_tool_call", "tool_use")  # items, items, and blocks
RESULTS = ("function_call_output", "custom_tool_call_output", "tool_result")
THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
ANSWERING = ("assistant", "model", "gpt", "ai", "bot")
CONTENTS = ("content", "parts", "text", "value")


def recognises(item: Item) -> bool:
    return any(map(_is_message, _listed(item)))


def _listed(item: Item) -> list[Any]:
    chunks = mapping(item.get("chunkedPrompt")).get("chunks")
    return next((one for one in (item.get("messages"), item.get("contents"), chunks) if isinstance(one, list)), [])


def _is_message(entry: object) -> bool:
    return isinstance(entry, dict) and bool(_role_in(entry))


def _role_in(entry: Item) -> str:
    return role_of(entry.get("role")) or role_of(entry.get("from"))


def read(item: Item) -> Conversation:
    builder = Builder()
    for entry in _listed(item):
        kind = mapping(entry).get("type")
        if _is_message(entry):
            _add(builder, entry)
        elif kind in (*CALLS, *RESULTS, *THOUGHTS):
            _add_block(builder, entry)
        else:
            builder.left_out["entries that are no messages"] += 1
    return builder.conversation("messages", item.get("id"), item.get("title"))


def _add(builder: Builder, message: Item) -> None:
    role = _role_in(message)
    content = next((message[name] for name in CONTENTS if message.get(name) is not None), None)
    if message.get("isThought"):  # Google AI Studio
        content = [{"type": THOUGHTS[0]}]
    parts = list(map(_block_of, content)) if isinstance(content, list) else [content]
    blocks = [part for part in items(parts) if part.get("type") in (*CALLS, *RESULTS, *THOUGHTS)]
    text = text_and_files(builder, [part for part in parts if part not in blocks] if blocks else content)
    if role in ("system", "developer"):
        builder.left_out["instructions"] += 1
    elif role in ("tool", "function", "observation"):
        builder.result(text, text_of(message.get("tool_call_id")) or text_of(message.get("name")))
    elif role in ANSWERING:
        calls = [*_calls(message), *(_call(block) for block in blocks if block.get("type") in CALLS)]
        if calls:
            builder.call(text, calls)
        else:
            builder.say(Role.ASSISTANT, text)
        builder.left_out["thoughts"] += sum(block.get("type") in THOUGHTS for block in blocks)
    else:
        for block in blocks:
            _add_block(builder, block)
        builder.say(Role.USER, text)


def _block_of(part: object) -> object:
    """Return a part of Gemini's as the block that it is elsewhere."""
    inner = mapping(part)
    if call := mapping(inner.get("functionCall")):
        return {"type": "function_call", "call_id": call.get("id"), **call, "arguments": call.get("args")}
    if response := mapping(inner.get("functionResponse")):
        output = json_text(response.get("response") or "")
        return {"type": "function_call_output", "call_id": response.get("id"), "output": output}
    return {"type": THOUGHTS[1]} if inner.get("thought") else part


def _add_block(builder: Builder, block: Item) -> None:
    if block["type"] in THOUGHTS:
        builder.left_out["thoughts"] += 1
    elif block["type"] in CALLS:
        builder.call("", [_call(block)])
    else:
        text = text_and_files(builder, block.get("output", block.get("content")))
        builder.result(text, text_of(block.get("call_id")) or text_of(block.get("tool_use_id")))


def _call(block: Item) -> tuple[str, str, str]:
    given = text_of(block.get("call_id")) or text_of(block.get("id"))
    arguments = block.get("arguments") or block.get("input") or "{}"
    return given, text_of(block.get("name")), json_text(arguments)


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
    for part in content if isinstance(content, list) else [content]:
        if not part:
            continue
        inner = mapping(part)
        words = (text_of(inner.get(name)) for name in ("text", "content", "refusal"))
        text = part if isinstance(part, str) else next(filter(None, words), "")
        if not text and inner.get("type") not in TEXTS:
            builder.left_out["images and files"] += 1
            text = "[Image or file, not imported]"
        texts.append(text)
    return "\n".join(text for text in texts if text)
