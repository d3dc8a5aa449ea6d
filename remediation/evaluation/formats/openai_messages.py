"""Lists of messages in the format of OpenAI's chat completions: one dialog, several, or objects with ``messages``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dominds.llm.messages import Message, Role, ToolCall
from remediation.evaluation.dialogs import Dialog, Turn


def recognises(content: Any) -> bool:
    return any(True for _ in _message_lists(content))


def read(content: Any, name: str) -> tuple[Dialog, ...]:
    return tuple(
        dialog_of(messages, f"{name}-{number}", "messages")
        for number, messages in enumerate(_message_lists(content), 1)
    )


def _message_lists(content: Any) -> Iterator[Sequence[Mapping[str, Any]]]:
    if is_messages(content):
        yield content
    elif isinstance(content, dict) and is_messages(content.get("messages")):
        yield content["messages"]
    elif isinstance(content, list) and not all(isinstance(item, dict) and "role" in item for item in content):
        for item in content:
            yield from _message_lists(item)


def is_messages(content: Any) -> bool:
    return isinstance(content, list) and bool(content) and all(map(_is_message, content))


def _is_message(item: Any) -> bool:
    return (
        isinstance(item, dict) and isinstance(item.get("role"), str) and bool({"content", "tool_calls"} & item.keys())
    )


def dialog_of(messages: Sequence[Mapping[str, Any]], name: str, form: str) -> Dialog:
    """Make a dialog of messages. System and developer messages become the instructions."""
    instructions = "\n\n".join(
        text_of(item.get("content")) for item in messages if item["role"] in ("system", "developer")
    )
    return Dialog(name, form, tuple(_turns(messages)), (), instructions)


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    """Read messages as turns.

    Files use the same id for several tool calls. So each call gets a unique id, and a result goes to the newest call
    that had its id.
    """
    own_ids: dict[str, str] = {}
    for number, item in enumerate(messages, 1):
        role, text = item["role"], text_of(item.get("content"))
        if role in ("system", "developer"):
            continue
        if role in ("tool", "function"):
            given = item.get("tool_call_id") or item.get("name") or ""
            message = Message(Role.TOOL, text, tool_call_id=own_ids.get(given, given))
        else:
            calls = tuple(_calls(item, number, own_ids))
            message = Message(Role.ASSISTANT if role in ("assistant", "model") else Role.USER, text, calls)
        yield Turn(str(number), role, message, text)


def _calls(item: Mapping[str, Any], number: int, own_ids: dict[str, str]) -> Iterator[ToolCall]:
    asked = list(item.get("tool_calls") or ())
    if item.get("function_call"):
        asked.append({"id": item["function_call"]["name"], "function": item["function_call"]})
    for place, call in enumerate(asked):
        function = call.get("function", call)
        arguments = function.get("arguments", "")
        own_ids[call.get("id") or ""] = own = f"{number}-{place}-{call.get('id', '')}"
        yield ToolCall(own, function["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))


def text_of(content: Any) -> str:
    """Return a message's text. Other parts, such as images, are left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" if isinstance(part, dict) else str(part) for part in content)
    return ""
