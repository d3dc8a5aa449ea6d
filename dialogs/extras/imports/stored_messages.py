"""Messages as chat programs store them, in the form that lists of messages have: of Grok, LM Studio, Jan and
llama.cpp's web interface, and of sessions of Gemini CLI, Claude Code and Codex.
"""

from collections.abc import Iterator
from typing import Any

from dialogs.extras.imports.conversation import Item, items, mapping, role_of, text_of

WRAPPERS = ("message", "payload", "response")  # of a message: Claude Code, Codex, Grok
SPEAKERS = ("user", "assistant", "gemini")  # types of entries that name no role


def role_in(entry: Item) -> str:
    """Return who speaks in an entry, or an empty text."""
    named = next(filter(None, (role_of(entry.get(name)) for name in ("role", "from", "sender"))), "")
    kind = role_of(entry.get("type"))
    return named or (kind if kind in SPEAKERS and "content" in entry else "")


def as_messages(entries: list[Any]) -> Iterator[Any]:
    """Yield what the entries of a list hold, one message after another."""
    for entry in _replay(entries):
        outer = mapping(entry)
        if isinstance(outer.get("versions"), list):
            yield from _steps_shown(outer)
        elif role_in(outer) or not (inner := _unwrap(outer)):
            yield entry
        else:
            yield {**{name: value for name, value in outer.items() if name not in WRAPPERS}, **inner}


def _unwrap(outer: Item) -> Item:
    inner = (mapping(outer.get(name)) for name in WRAPPERS)
    return next((one for one in inner if role_in(one) or text_of(one.get("type"))), {})


def _replay(entries: list[Any]) -> list[Any]:
    """Return what a session of Gemini CLI holds in the end: it writes a message anew whenever something of it changes,
    and takes back all from one message on.
    """
    if not any(entry.get("type") == "gemini" or "$set" in entry for entry in items(entries)):
        return entries
    held: dict[str, Any] = {}
    for place, entry in enumerate(items(entries)):
        if "$rewindTo" in entry:
            target = str(entry["$rewindTo"])
            while target in held and held.popitem()[0] != target:
                pass
        elif "$set" in entry:  # a compression sets fewer messages than were said, which are kept here
            held |= {str(one.get("id")): one for one in items(mapping(entry["$set"]).get("messages"))}
        else:
            held[text_of(entry.get("id")) or f"entry {place}"] = entry
    return list(held.values())


def _steps_shown(entry: Item) -> Iterator[Item]:
    """Yield the steps of that version of a message which LM Studio shows."""
    versions, number = list(items(entry["versions"])), entry.get("currentlySelected")
    if not isinstance(number, int) or not 0 <= number < len(versions):
        number = -1
    shown = versions[number] if versions else {}
    if not isinstance(shown.get("steps"), list):
        yield shown
    for step in items(shown.get("steps")):
        if step.get("type") == "contentBlock":
            is_thought = mapping(step.get("style")).get("type") == "thinking"
            yield {"role": shown.get("role"), "content": [{"type": "thinking"}] if is_thought else step.get("content")}


def block_of(part: object) -> object:
    """Return a part that is a call, a result or a thought as the block that it is elsewhere."""
    inner = mapping(part)
    if call := mapping(inner.get("functionCall")):
        return {"type": "function_call", "call_id": call.get("id"), **call, "arguments": call.get("args")}
    if response := mapping(inner.get("functionResponse")):
        return {"type": "function_call_output", "call_id": response.get("id"), "output": response.get("response") or ""}
    match inner.get("type"):
        case "toolCallRequest":
            arguments = inner.get("parameters") or inner.get("arguments")
            return {"type": "tool_use", "id": _call_id(inner), "name": inner.get("name"), "input": arguments}
        case "toolCallResult":
            return {"type": "tool_result", "tool_use_id": _call_id(inner), "content": inner.get("content")}
        case "tool_call":
            about = {"id": inner.get("tool_call_id"), "name": inner.get("tool_name"), "input": inner.get("input")}
            return {"type": "tool_use", **about, "result": inner.get("output")}
    return {"type": "thinking"} if inner.get("thought") else part


def _call_id(part: Item) -> str:
    return text_of(part.get("toolCallRequestId")) or str(part.get("callId"))
