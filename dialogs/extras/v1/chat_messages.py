"""Reader of the messages of a chat completion, with their calls, images and files."""

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from dialogs.actions.attachments import check_files, from_base64
from dialogs.errors import Invalid
from dialogs.extras.v1.errors import invalid
from dialogs.extras.v1.fields import read_object, storable
from dialogs.extras.v1.history import Call, ClientMessage, with_ids_apart
from dialogs.extras.v1.notices import without_notices
from dialogs.extras.v1.options import check_offered
from dominds.budgets import CONVERSATION_MESSAGES

MAX_ID = 120  # characters of an id, and of the name of a call that was made, as they are stored
KEPT_OF_ID = 60
MAX_NAME = 64
FILES = ("image_url", "file")
OF_USER = "text, images and files are"
DETAILS = ("auto", "low", "high", "original")
DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(;[\w.=-]+)*;base64,")  # the type that it states is not believed
LONGEST_HEADER = 200


def messages_of(value: Any, instructions_end: int | None) -> tuple[str, tuple[ClientMessage, ...]]:
    """Return the instructions, and the conversation with all other system messages."""
    if not isinstance(value, list):
        raise invalid("messages must be a list with at least one message.", "messages")
    check_number(len(value))
    system: list[str] = []
    history: list[ClientMessage] = []
    for index, message in enumerate(value):
        param = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"{param} must be an object.", param)
        role = message.get("role")
        check_offered("message", message, param)
        content = message.get("content")
        if role == "user":
            if content is None and index + 1 == len(value):
                raise invalid("content must be text, or a list of parts; it may be empty.", f"{param}.content")
            user_message = _user_message(content, f"{param}.content")
            history.append(user_message.with_lead(_speaker(message, param)))
            continue
        text = _text(content, f"{param}.content")
        match role:
            case "system" | "developer":
                text = f"{_speaker(message, param)}{text}"
                is_other = bool(system) if instructions_end is None else index >= instructions_end
                if text and (history or is_other):
                    leads = instructions_end is None and all(answer.leads for answer in history)
                    history.append(ClientMessage("system", text, leads=leads))
                elif text:
                    system.append(text)
            case "assistant":
                text = text or _text(message.get("refusal"), f"{param}.refusal")
                calls = _calls(message.get("tool_calls"), f"{param}.tool_calls")
                history.append(ClientMessage("assistant", without_notices(text), calls))
            case "tool":
                history.append(
                    ClientMessage("tool", text, call_id=_id(message.get("tool_call_id"), f"{param}.tool_call_id"))
                )
            case _:
                raise invalid("role must be system, developer, user, assistant or tool.", f"{param}.role")
    if history and history[-1].role == "system":
        history = _asked_by_system(history)
    return "\n\n".join(system), tuple(with_ids_apart(history))


def check_end(messages: Sequence[ClientMessage], told: int) -> None:
    """Raise ``ApiError`` unless there is something to answer at the end. ``told`` is the number of messages as sent."""
    last = next((message.role for message in reversed(messages) if message.role != "system"), "")
    if not told:
        raise invalid("messages must be a list with at least one message.", "messages")
    if not last:
        raise invalid("System messages alone are no request: send what is to be answered as the user's.", "messages")
    if last == "assistant":
        raise invalid(
            "An answer cannot be begun for the model: the last message must be the user's or a tool's.", "messages"
        )


def _asked_by_system(history: list[ClientMessage]) -> list[ClientMessage]:
    """Take system messages that follow an answer as the user's: NextChat asks for its summaries so."""
    end = next((at for at in reversed(range(len(history))) if history[at].role != "system"), -1)
    if end < 0 or history[end].role != "assistant":
        return history
    return [*history[: end + 1], *(replace(message, role="user") for message in history[end + 1 :])]


def _speaker(message: dict[str, Any], param: str) -> str:
    """Return the speaker's name, to stand before their words, where each model, summary and search reads it.

    A name that only repeats the role, as AutoGen always sends it, tells nothing.
    """
    name = message.get("name")
    if name in (None, "", message.get("role")):
        return ""
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise invalid(f"name must be a text of at most {MAX_NAME} characters.", f"{param}.name")
    return f"{storable(name, f'{param}.name')}: "


def check_number(messages: int) -> None:
    """Raise ``ApiError`` for more than one transaction should store."""
    if messages > CONVERSATION_MESSAGES.most:
        raise invalid(CONVERSATION_MESSAGES.sentence("The request tells"), "messages")


def _text(content: Any, param: str, known: str = "text is") -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return storable(content, param)
    if not isinstance(content, list):
        raise invalid("content must be text, or a list of text parts.", param)
    parts = []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get({"text": "text", "refusal": "refusal"}.get(str(kind), "")) if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise invalid(f"Only {known} understood, not {kind or part!r}.", f"{param}[{index}]")
        parts.append(storable(text, param))
    return "\n".join(parts)


def _user_message(content: Any, param: str) -> ClientMessage:
    """Read text parts, images as data URLs and files as base64."""
    parts = content if isinstance(content, list) else []
    files = [(at, part) for at, part in enumerate(parts) if _is_file(part)]
    if not files:
        return ClientMessage("user", _text(content, param, OF_USER))
    text = _text([part for part in parts if not _is_file(part)], param, OF_USER)
    try:
        sound = check_files([_file(part, f"{param}[{at}]") for at, part in files])
    except Invalid as refusal:
        raise invalid(refusal.message, param) from None
    attached = tuple(
        replace(file, detail=_detail(part, f"{param}[{at}]"), at=_place(parts[:at], text))
        for file, (at, part) in zip(sound, files, strict=True)
    )
    return ClientMessage("user", text, digests=tuple(file.sha256 for file in attached), attached=attached)


def _is_file(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in FILES


def _place(before: list[Any], text: str) -> int | None:
    """Return how much of the text is said before a file, or None for all of it."""
    place = len(_text([part for part in before if not _is_file(part)], ""))
    return place if place < len(text) else None


def _detail(part: dict[str, Any], param: str) -> str:
    """Return the detail of an image, empty where the model chooses."""
    value = read_object(part.get("image_url"), param).get("detail") or "auto"
    if value not in DETAILS:
        raise invalid(f"detail must be one of {', '.join(DETAILS)}.", f"{param}.image_url.detail")
    return "" if value == "auto" else str(value)


def _file(part: dict[str, Any], param: str) -> tuple[str, bytes]:
    kind = part["type"]
    given = read_object(part.get(kind), param)
    if kind == "file":
        check_offered("file", given, f"{param}.file")
    name, data = (given.get("filename"), given.get("file_data")) if kind == "file" else ("image", given.get("url"))
    if name is not None and not isinstance(name, str):
        raise invalid("filename must be text.", f"{param}.file.filename")
    pattern_match = DATA_URL.match(data[:LONGEST_HEADER]) if isinstance(data, str) else None
    if not isinstance(data, str) or pattern_match is None:
        raise invalid(
            "Send it as a data URL (data:image/png;base64,...): nothing is fetched from other addresses, and no file "
            "is kept here under an id.",
            param,
        )
    return from_base64(storable(name or kind, param), data[pattern_match.end() :])


def _calls(value: Any, param: str) -> tuple[Call, ...]:
    if not value:
        return ()
    if not isinstance(value, list):
        raise invalid("tool_calls must be a list.", param)
    calls = []
    for index, item in enumerate(value):
        function = read_object(read_object(item, f"{param}[{index}]").get("function"), f"{param}[{index}].function")
        name, arguments = function.get("name"), function.get("arguments", "{}")
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise invalid("A call needs a function with a name and arguments as text.", f"{param}[{index}].function")
        # Models make up names that no tool may have; their calls stay in the history of their clients.
        name = storable(name, f"{param}[{index}].function.name")[:MAX_ID]
        calls.append(Call(_id(item.get("id"), f"{param}[{index}].id"), name, storable(arguments, param)))
    return tuple(calls)


def _id(value: Any, param: str) -> str:
    """Return a call's id, a long one shortened: LiteLLM puts whole signatures of thoughts into ids."""
    if not isinstance(value, str) or not value:
        raise invalid(f"{param} must be a text that is not empty.", param)
    text = storable(value, param)
    return text if len(text) <= MAX_ID else f"{text[:KEPT_OF_ID]}~{sha256(text.encode()).hexdigest()[:32]}"
