"""Conversion of messages as chat programs store them into the form of ``message_lists``: of Grok, LM Studio, Jan,
SillyTavern and llama.cpp's web interface, of Google's record of activity, and of sessions of Gemini CLI, Claude Code
and Codex.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

from dialogs.extras.imports.conversation import Item, items, mapping, moment_of, role_of, text_of

WRAPPERS = ("message", "payload", "response")  # fields that hold the message: of Claude Code, Codex and Grok
SPEAKERS = ("user", "assistant", "gemini")  # types that tell who speaks in entries without a role
ANSWERING = ("assistant", "model", "gpt", "ai", "bot", "gemini", "response")
ASKING = ("user", "human")
CONVERSATIONS = ("conversation_id", "conversationId", "thread_id", "threadId", "topicId", "chat_id", "chatId", "convId")
ASKED = ("Prompted ", "Said ")  # with which Google's record of activity begins a question in English
LINES = ("p", "li", "br", "div", "tr", "pre", "h1", "h2", "h3", "h4", "h5", "h6")


def role_in(entry: Item) -> str:
    """Return who speaks in an entry, or an empty text."""
    if isinstance(entry.get("mes"), str) and "is_user" in entry:  # SillyTavern
        return ASKING[0] if entry["is_user"] is True else ANSWERING[0]
    if _is_activity(entry):
        return ASKING[0]
    named = next(filter(None, (role_of(entry.get(name)) for name in ("role", "from", "sender"))), "")
    other = next(filter(None, (role_of(entry.get(name)) for name in ("author", "speaker"))), "")
    kind = role_of(entry.get("type"))
    return (
        named
        or (other if other in (*ASKING, *ANSWERING) else "")
        or (kind if kind in SPEAKERS and "content" in entry else "")
    )


def as_messages(entries: list[Any]) -> Iterator[Any]:
    """Yield the messages that the entries of a list hold. An entry without a message is yielded unchanged."""
    characters = {text_of(entry.get("name")) for entry in items(entries) if "mes" in entry and not entry.get("is_user")}
    for entry in _replay(entries):
        outer = mapping(entry)
        if len(characters) > 1 and "mes" in outer and not outer.get("is_user"):
            yield {**outer, "mes": f"{text_of(outer.get('name'))}: {text_of(outer['mes'])}"}
        elif _is_activity(outer):
            yield from _question_and_answer(outer)
        elif isinstance(outer.get("versions"), list):
            yield from _steps_shown(outer)
        elif role_in(outer) or not (inner := _unwrap(outer)):
            yield entry
        else:
            yield {**{name: value for name, value in outer.items() if name not in WRAPPERS}, **inner}


def conversation_of(entry: Item) -> str:
    """Return an id that the messages of one conversation share, or an empty text. In Google's record of activity, which
    names no conversations, it is the day.
    """
    if _is_activity(entry):
        return text_of(entry.get("time"))[:10]
    return next((str(entry[name]) for name in CONVERSATIONS if entry.get(name)), "")


def _is_activity(entry: Item) -> bool:
    products = entry.get("products")
    services = [entry.get("header"), *(products if isinstance(products, list) else ())]
    is_gemini = any(text_of(service).startswith(("Gemini", "Bard")) for service in services)
    return is_gemini and ("safeHtmlItem" in entry or text_of(entry.get("title")).startswith(ASKED))


def _question_and_answer(entry: Item) -> Iterator[Item]:
    asked = text_of(entry.get("title"))
    for opening in ASKED:
        asked = asked.removeprefix(opening)
    pictures = entry.get("imageFile")
    yield {"role": ASKING[0], "content": asked, "files": [pictures] if pictures else [], **entry, "title": ""}
    answer = "\n\n".join(_text_in_html(text_of(part.get("html"))) for part in items(entry.get("safeHtmlItem")))
    if answer:
        yield {"role": ANSWERING[0], "content": answer, "time": entry.get("time")}


class _Words(HTMLParser):
    """The text of HTML, with a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in LINES:
            self.words.append("\n- " if tag == "li" else "\n")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _text_in_html(html: str) -> str:
    parser = _Words()
    parser.feed(html)
    parser.close()
    return "".join(parser.words).strip()


def _unwrap(outer: Item) -> Item:
    inner = (mapping(outer.get(name)) for name in WRAPPERS)
    return next((message for message in inner if role_in(message) or text_of(message.get("type"))), {})


def _replay(entries: list[Any]) -> list[Any]:
    """Return the messages that a session of Gemini CLI holds in the end. Its file is a log, in which a changed message
    is written again, and ``$rewindTo`` takes back a message and all after it.
    """
    if any(map(_is_activity, items(entries))):  # the newest comes first
        return sorted(
            entries, key=lambda entry: moment_of(mapping(entry).get("time")) or datetime.min.replace(tzinfo=UTC)
        )
    if not any(entry.get("type") == "gemini" or "$set" in entry for entry in items(entries)):
        return entries
    held: dict[str, Any] = {}
    for place, entry in enumerate(items(entries)):
        if "$rewindTo" in entry:
            target = str(entry["$rewindTo"])
            while target in held and held.popitem()[0] != target:
                pass
        elif "$set" in entry:  # after a compression it lists fewer messages; the others are kept
            held |= {str(message.get("id")): message for message in items(mapping(entry["$set"]).get("messages"))}
        else:
            held[text_of(entry.get("id")) or f"entry {place}"] = entry
    return list(held.values())


def _steps_shown(entry: Item) -> Iterator[Item]:
    """Yield the steps of the version of a message that LM Studio shows."""
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
    """Return a part that is a call, a result or a thought in the form of a block; return any other part unchanged."""
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
        case "step-start":
            return None
    if "toolCallId" in (call := mapping(inner.get("toolInvocation")) or inner):
        return _part_of_ai_sdk(call)
    return {"type": "thinking"} if inner.get("thought") else part


def _part_of_ai_sdk(part: Item) -> Item:
    """Return a call, with its result if it has one, or a result, as Vercel's AI SDK and Chatbox store them."""
    result = part.get("result", part.get("output"))
    given, kind = part["toolCallId"], text_of(part.get("type"))
    if kind == "tool-result":
        return {"type": "tool_result", "tool_use_id": given, "content": mapping(result).get("value", result)}
    name, arguments = part.get("toolName") or kind.removeprefix("tool-"), part.get("args") or part.get("input")
    return {"type": "tool_use", "id": given, "name": name, "input": arguments, "result": result}


def _call_id(part: Item) -> str:
    return text_of(part.get("toolCallRequestId")) or str(part.get("callId"))
