"""Lists of messages, alone or under ``messages``: in the form of OpenAI's chat completions, or of other protocols of
model servers, with calls and results as blocks or items. Further forms are ShareGPT's and Gemini's names for the
fields, the prompts that Google AI Studio saves, and those that ``stored_messages`` converts.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from dialogs.extras.imports.conversation import (
    Builder,
    Conversation,
    Image,
    Item,
    entries_by_name,
    image_in,
    items,
    json_text,
    mapping,
    moment_of,
    text_of,
)
from dialogs.extras.imports.stored_messages import ANSWERING, as_messages, block_of, conversation_of, role_in
from dialogs.extras.imports.tree import Node, current_path
from dominds.llm.messages import Role

TEXTS = ("text", "input_text", "output_text")
CALLS = ("function_call", "custom_tool_call", "tool_use")
RESULTS = ("function_call_output", "custom_tool_call_output", "tool_result")
THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
INSTRUCTING, TOOLS = ("system", "developer"), ("tool", "function", "observation")
CONTENTS = ("content", "text", "parts", "value", "message", "contentParts", "mes", "say")
# Names of fields: lists of messages, times, a message's id and its parent's, attached files, and the model's thoughts.
LISTS = ("messages", "contents", "responses", "history")
TIMES = ("timestamp", "created_at", "create_time", "createdAt", "send_date", "time", "date")
TITLES = ("title", "chatTitle", "name", "topic", "summary")
HEADINGS = ("summary", "character_name")  # of entries beside messages: Claude Code, SillyTavern
NAMES, PARENTS = ("_id", "id"), ("parent", "parent_response_id")
FILES = ("extra", "file_attachments", "attachments", "experimental_attachments", "attachedFiles", "files", "images")
UNTOLD = ("thoughts", "thinking", "reasoning", "reasoning_content", "reasoningContent", "agent_thinking_traces")


def recognises(item: Item) -> bool:
    return any(map(_is_message, as_messages(_list_in(item))))


def separate(item: Item) -> Iterator[Item]:
    """Yield the item, or one item for each conversation if its messages name several."""
    listed = item.get("messages")
    groups: dict[str, list[Any]] = {}
    for entry in listed if isinstance(listed, list) else ():
        inner = mapping(entry)
        own = conversation_of(inner) if _is_message(entry) or not groups else next(reversed(groups))
        groups.setdefault(own, []).append(entry)
    if len(groups) < 2:
        yield item
    else:
        yield from ({"messages": entries} for entries in groups.values())


def _list_in(item: Item) -> list[Any]:
    chunks = mapping(item.get("chunkedPrompt")).get("chunks")
    return next((value for value in (*map(item.get, LISTS), chunks) if isinstance(value, list)), [])


def _is_message(entry: object) -> bool:
    return isinstance(entry, dict) and bool(role_in(entry))


def _first_of(entry: Item, names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def read(item: Item) -> Conversation:
    builder = Builder()
    about = {**mapping(item.get("conversation")), **mapping(item.get("conv")), **item}
    headings: list[object] = [_first_of(about, TITLES)]
    for entry in _path(builder, list(as_messages(_list_in(item))), about.get("currNode")):
        kind = mapping(entry).get("type")
        if _is_message(entry):
            _add(builder, entry)
        elif kind in (*CALLS, *RESULTS, *THOUGHTS):
            _add_block(builder, entry)
        else:
            builder.left_out["entries that are no messages"] += 1
            headings.append(_first_of(mapping(entry), HEADINGS))
    title = next(filter(None, map(text_of, headings)), "")
    return builder.conversation("messages", _first_of(about, ("id", "sessionId")), title)


def _path(builder: Builder, entries: list[Any], end: object) -> list[Any]:
    """Return the entries that lead to the newest one, or to ``end``, if entries name their parents; otherwise all."""
    if not any(_first_of(entry, PARENTS) for entry in items(entries)):
        return entries
    by_name = entries_by_name(
        (str(_first_of(mapping(entry), NAMES) or f"entry {place}"), mapping(entry))
        for place, entry in enumerate(entries)
    )
    nodes = [
        Node(name, _first_of(entry, PARENTS), moment_of(_first_of(entry, TIMES)), _is_message(entry))
        for name, entry in by_name.items()
    ]
    path = current_path(nodes, end)
    builder.left_out["messages of other branches"] += len(nodes) - len(path)
    return [by_name[node.name] for node in path]


def _add(builder: Builder, message: Item) -> None:
    if message.get("isSidechain") or message.get("isMeta"):  # Claude Code
        builder.left_out["hidden messages"] += 1
        return
    role, at = role_in(message), moment_of(_first_of(message, TIMES))
    steps = list(_steps(_parts(message))) or [([], [])]
    is_persons = role not in (*INSTRUCTING, *TOOLS, *ANSWERING)
    images: list[Image] | None = [] if is_persons else None
    listed, beside = _listed_calls(message), _texts_beside(builder, message, images)
    if not (
        any(parts or blocks for parts, blocks in steps) or listed or beside or images or any(map(message.get, UNTOLD))
    ):
        builder.left_out["messages without a text"] += 1
    for number, (parts, blocks) in enumerate(steps, 1):
        is_last = number == len(steps)
        text = "\n\n".join(filter(None, (text_and_files(builder, parts, images), *(beside if is_last else ()))))
        if role in INSTRUCTING:
            builder.left_out["instructions"] += bool(text)
        elif role in TOOLS and not blocks:
            given = _first_of(message, ("tool_call_id", "toolCallId", "name"))
            builder.result(text, text_of(given), at)
        elif role in ANSWERING:
            _add_answer(builder, text, blocks, listed if is_last else [], at)
        else:
            for block in blocks:
                _add_block(builder, block)
            builder.say(Role.USER, text, at, images if images and is_last else ())
    builder.left_out["thoughts"] += role in ANSWERING and any(map(message.get, UNTOLD))


def _parts(message: Item) -> list[Any]:
    """Return the parts of a message: of the first list that has calls, or else of the first one that is not empty."""
    if message.get("isThought"):  # Google AI Studio
        return [{"type": THOUGHTS[0]}]
    contents = [content for content in map(message.get, CONTENTS) if content]
    found = [list(map(block_of, content)) if isinstance(content, list) else [content] for content in contents]
    calling = (parts for parts in found if any(part.get("type") in CALLS for part in items(parts)))
    return [part for part in next(calling, found[0] if found else []) if part]


def _steps(parts: Sequence[Any]) -> Iterator[tuple[list[Any], list[Item]]]:
    """Yield a message's steps: the parts that are words, and the blocks that are calls, results and thoughts. Words
    after a result begin a new step.
    """
    said: list[Any] = []
    blocks: list[Item] = []
    for part in parts:
        if isinstance(part, dict) and part.get("type") in (*CALLS, *RESULTS, *THOUGHTS):
            blocks.append(part)
            continue
        if any(block["type"] in RESULTS or _result_in(block) is not None for block in blocks):
            yield said, blocks
            said, blocks = [], []
        said.append(part)
    if said or blocks:
        yield said, blocks


def _add_answer(
    builder: Builder, text: str, blocks: Sequence[Item], listed: Sequence[Item], at: datetime | None
) -> None:
    made = [block for block in blocks if block.get("type") in CALLS]
    calls = [*map(_call_in_list, listed), *map(_call, made)]
    if calls:
        builder.call(text, calls, at)
    else:
        builder.say(Role.ASSISTANT, text, at)
    for (given, _, _), call in zip(calls, (*listed, *made), strict=True):
        if (result := _result_in(call)) is not None:
            builder.result(_result_text(builder, result), given, at)
    for block in blocks:
        if block.get("type") in RESULTS:
            _add_block(builder, block)
    builder.left_out["thoughts"] += sum(block.get("type") in THOUGHTS for block in blocks)


def _result_in(call: Item) -> Any:
    return _first_of(call, ("result", "response"))


def _texts_beside(builder: Builder, message: Item, images: list[Image] | None) -> list[str]:
    """Return the texts of files that a message lists, and add its images to ``images``. Other files are counted, and a
    line names them.
    """
    texts = []
    for name in FILES:
        listed = message.get(name)
        if isinstance(listed, dict):  # SillyTavern
            listed = [file for kind in ("image", "file", "files", "media") if (file := listed.get(kind))]
        for given in listed if isinstance(listed, list) else ():
            file = mapping(given)
            if name == "images" and isinstance(given, str):  # Ollama
                file = {"source": {"media_type": "image/", "data": given}}
            if images is not None and (image := image_in(file)):
                images.append(image)
                continue
            content, title = text_of(file.get("content")), text_of(file.get("name")) or "file"
            builder.left_out["images and files"] += not content
            texts.append(f"[Attached: {title}]\n{content}" if content else f"[Attached, not imported: {title}]")
    return texts


def _add_block(builder: Builder, block: Item) -> None:
    if block["type"] in THOUGHTS:
        builder.left_out["thoughts"] += 1
    elif block["type"] in CALLS:
        builder.call("", [_call(block)])
    else:
        text = _result_text(builder, block.get("output", block.get("content")))
        builder.result(text, text_of(block.get("call_id")) or text_of(block.get("tool_use_id")))


def _result_text(builder: Builder, result: Any) -> str:
    """Return the text of a result, which may be a text, parts, or the outputs within a call; anything else is JSON."""
    parts = list(map(block_of, result)) if isinstance(result, list) else [result]
    outputs = [part["output"] for part in items(parts) if part.get("type") in RESULTS and "output" in part]
    if outputs:
        return "\n".join(map(json_text, outputs))
    inner = mapping(result)
    if inner and not {"content", "text"} & inner.keys():
        return json_text(result)
    return text_and_files(builder, inner.get("content", result))


def _call(block: Item) -> tuple[str, str, str]:
    given = text_of(block.get("call_id")) or text_of(block.get("id"))
    arguments = block.get("arguments") or block.get("input") or "{}"
    return given, text_of(block.get("name")), json_text(arguments)


def _listed_calls(message: Item) -> list[Item]:
    """Return the calls that a message lists apart from its content. llama.cpp's web interface has them as JSON text."""
    listed = _first_of(message, ("tool_calls", "toolCalls")) or mapping(message.get("metadata")).get("tool_calls")
    if isinstance(listed, str):
        try:
            listed = json.loads(listed)
        except ValueError:
            listed = None
    results: list[Item] = [{**call, **mapping(call.get("tool"))} for call in items(listed)]  # Jan
    if old := mapping(message.get("function_call")):
        results.append({"id": old.get("name"), "function": old})
    return results


def _call_in_list(call: Item) -> tuple[str, str, str]:
    function = mapping(call.get("function") or call)
    arguments = _first_of(function, ("arguments", "args")) or "{}"
    return text_of(call.get("id")), text_of(function.get("name")), json_text(arguments)


def text_and_files(builder: Builder, content: object, images: list[Image] | None = None) -> str:
    """Return a message's text, and add its images to ``images``. Other parts are counted and marked in the text."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else [content]:
        if not part:
            continue
        inner = mapping(part)
        if images is not None and (image := image_in(inner)):
            images.append(image)
            continue
        words = [part, *map(inner.get, ("text", "content", "refusal"))]
        words.append(mapping(inner.get("text")).get("value"))  # the form of OpenAI's Assistants API, and of Jan
        text = next(filter(None, map(text_of, words)), "")
        if not text and inner.get("type") not in TEXTS and not any(isinstance(word, str) for word in words):
            builder.left_out["images and files"] += 1
            text = "[Image or file, not imported]"
        texts.append(text)
    return "\n".join(text for text in texts if text)
