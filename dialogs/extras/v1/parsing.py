"""Reader of the body of ``POST /v1/chat/completions``. What cannot be honoured is refused with the field's name."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson

from dialogs.actions.attachments import check_files, from_base64
from dialogs.errors import Invalid
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.history import Call, ClientMessage, with_ids_apart
from dialogs.extras.v1.notices import without_notices
from dialogs.extras.v1.options import check_offered, params_in
from dialogs.store.text import unstorable_reason
from dominds.budgets import CONVERSATION_MESSAGES
from dominds.llm.json_text import dump
from dominds.llm.messages import ANY_TOOL, NO_TOOL

TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MAX_ID = 120  # characters of an id, and of the name of a call that was made, as they are stored
KEPT_OF_ID = 60
MAX_END_USER = 200
MAX_NAME = 64
FILES = ("image_url", "file")
DETAILS = ("auto", "low", "high", "original")
DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(;[\w.=-]+)*;base64,")  # what it says of its type is not believed
LONGEST_HEADER = 200
NOTICE_MODES = ("text", "comment", "off")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """``tools`` as ``Client.tools`` stores them. ``instructions`` are the system messages at the beginning, ``params``
    what it asks of the model. ``notices`` is empty where it does not say. ``labels`` are its metadata, sent back as
    they came. ``is_current`` says whether what was read of the dialog that it names still holds."""

    model: str
    messages: tuple[ClientMessage, ...]
    instructions: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    required_tool: str = ""
    stream: bool = False
    include_usage: bool = False
    include_reasoning: bool = False
    notices: str = ""
    dialog_id: UUID | None = None
    end_user: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)
    store: bool = True
    policy: str = ""
    is_asking: bool = True  # else its conversation is stored, and nobody answers
    is_current: Callable[[], bool] = lambda: True


def parse(raw: bytes, dialog_header: str = "") -> ChatRequest:
    return chat_request(body_of(raw), dialog_header)


def body_of(raw: bytes) -> dict[str, Any]:
    """Return the body. Raises ``ApiError``."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise invalid(f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise invalid("The body must be a JSON object.")
    return body


def chat_request(
    body: dict[str, Any],
    dialog_header: str = "",
    policy: str = "",
    instructions_end: int | None = None,
    *,
    is_asking: bool = True,
) -> ChatRequest:
    """Read a request, with a header's ``policy``. Raises ``ApiError``.

    The bodies of other protocols are translated into this one, and say where their instructions, one text there,
    end. Otherwise the first system message is the instructions. One that is not ``is_asking`` may end with an answer.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("Name an agent: GET /v1/models lists them.", "model")
    metadata = _mapping(body.get("metadata"), "metadata")
    options = _stream_options(body.get("stream_options"))
    tools, choice = _allowed_tools(_tools(body), body.get("tool_choice"))
    instructions, messages = _messages(body.get("messages"), instructions_end)
    if is_asking:
        _check_end(messages, len(body["messages"]))
    return ChatRequest(
        model=_storable(model, "model"),
        messages=messages,
        instructions=instructions,
        tools=tools,
        required_tool=_required_tool(choice, tools),
        stream=_flag(body.get("stream"), "stream"),
        include_usage=_flag(options.get("include_usage"), "stream_options.include_usage"),
        include_reasoning=_flag(body.get("include_reasoning"), "include_reasoning"),
        notices=_notices(metadata.get("notices")),
        dialog_id=_dialog_id(metadata.get("dialog_id") or dialog_header or None),
        end_user=_end_user(body),
        params=params_in(body),
        labels=metadata,
        store=body.get("store") is None or _flag(body["store"], "store"),
        policy=policy,
        is_asking=is_asking,
    )


def _mapping(value: Any, param: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"{param} must be an object.", param)
    return value


def _stream_options(given: Any) -> dict[str, Any]:
    options = _mapping(given, "stream_options")
    for name, value in options.items():
        if name != "include_usage" and value not in (None, False):
            raise invalid(f"stream_options.{name} is not offered here: leave it out.", f"stream_options.{name}")
    return options


def _flag(value: Any, param: str) -> bool:
    if value not in (None, True, False):
        raise invalid(f"{param} must be true or false.", param)
    return bool(value)


def _storable(text: str, param: str) -> str:
    if problem := unstorable_reason(text):
        raise invalid(f"{param} {problem}.", param)
    return text


def _notices(value: Any) -> str:
    if value is None:
        return ""
    if value not in NOTICE_MODES:
        raise invalid(f"metadata.notices must be one of {', '.join(NOTICE_MODES)}.", "metadata.notices")
    return str(value)


def _end_user(body: dict[str, Any]) -> str:
    """Return whom the program speaks for, by either of the protocol's names for it."""
    param = "safety_identifier" if body.get("safety_identifier") else "user"
    value = body.get(param) or ""
    if not isinstance(value, str) or len(value) > MAX_END_USER:
        raise invalid(f"{param} must be a text of at most {MAX_END_USER} characters.", param)
    return _storable(value, param)


def _dialog_id(value: Any) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(str(value))
    except ValueError:
        raise ApiError(404, "dialog_not_found", f"There is no dialog {value!r}.", param="metadata.dialog_id") from None


# Messages


def _messages(value: Any, instructions_end: int | None) -> tuple[str, tuple[ClientMessage, ...]]:
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


def _check_end(messages: Sequence[ClientMessage], told: int) -> None:
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
    return f"{_storable(name, f'{param}.name')}: "


def check_number(messages: int) -> None:
    """Raise ``ApiError`` for more than one transaction should store."""
    if messages > CONVERSATION_MESSAGES.most:
        raise invalid(CONVERSATION_MESSAGES.sentence("The request tells"), "messages")


def _text(content: Any, param: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return _storable(content, param)
    if not isinstance(content, list):
        raise invalid("content must be text, or a list of text parts.", param)
    parts = []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get({"text": "text", "refusal": "refusal"}.get(str(kind), "")) if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise invalid(f"Only text, images and files are understood, not {kind or part!r}.", f"{param}[{index}]")
        parts.append(_storable(text, param))
    return "\n".join(parts)


def _user_message(content: Any, param: str) -> ClientMessage:
    """Read text parts, images as data URLs and files as base64."""
    parts = content if isinstance(content, list) else []
    files = [(at, part) for at, part in enumerate(parts) if _is_file(part)]
    if not files:
        return ClientMessage("user", _text(content, param))
    text = _text([part for part in parts if not _is_file(part)], param)
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
    value = _mapping(part.get("image_url"), param).get("detail") or "auto"
    if value not in DETAILS:
        raise invalid(f"detail must be one of {', '.join(DETAILS)}.", f"{param}.image_url.detail")
    return "" if value == "auto" else str(value)


def _file(part: dict[str, Any], param: str) -> tuple[str, bytes]:
    kind = part["type"]
    given = _mapping(part.get(kind), param)
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
    return from_base64(_storable(name or kind, param), data[pattern_match.end() :])


def _calls(value: Any, param: str) -> tuple[Call, ...]:
    if not value:
        return ()
    if not isinstance(value, list):
        raise invalid("tool_calls must be a list.", param)
    calls = []
    for index, item in enumerate(value):
        function = _mapping(_mapping(item, f"{param}[{index}]").get("function"), f"{param}[{index}].function")
        name, arguments = function.get("name"), function.get("arguments", "{}")
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise invalid("A call needs a function with a name and arguments as text.", f"{param}[{index}].function")
        # Models make up names that no tool may have; their calls stay in the history of their clients.
        name = _storable(name, f"{param}[{index}].function.name")[:MAX_ID]
        calls.append(Call(_id(item.get("id"), f"{param}[{index}].id"), name, _storable(arguments, param)))
    return tuple(calls)


def _id(value: Any, param: str) -> str:
    """Return a call's id, a long one shortened: LiteLLM puts whole signatures of thoughts into ids."""
    if not isinstance(value, str) or not value:
        raise invalid(f"{param} must be a text that is not empty.", param)
    text = _storable(value, param)
    return text if len(text) <= MAX_ID else f"{text[:KEPT_OF_ID]}~{sha256(text.encode()).hexdigest()[:32]}"


# Tools


def _tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    value = body.get("tools") or []
    if not isinstance(value, list):
        raise invalid("tools must be a list.", "tools")
    tools = [_tool(item, f"tools[{index}]") for index, item in enumerate(value)]
    names = [tool["name"] for tool in tools]
    if len(names) > len(set(names)):
        raise invalid("Two tools have the same name.", "tools")
    return tools


def _tool(value: Any, param: str) -> dict[str, Any]:
    item = _mapping(value, param)
    function = _mapping(item.get("function"), f"{param}.function")
    if item.get("type") != "function":
        raise invalid("Only tools of type function are understood.", f"{param}.type")
    name, description = function.get("name"), function.get("description") or ""
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        raise invalid(
            "A tool's name has 1 to 64 letters, digits, dots, dashes or underscores.", f"{param}.function.name"
        )
    if not isinstance(description, str):
        raise invalid("description must be text.", f"{param}.function.description")
    parameters = _mapping(function.get("parameters"), f"{param}.function.parameters")
    if "\\u0000" in dump(parameters).decode():
        raise invalid("parameters hold a NUL character, which cannot be stored.", f"{param}.function.parameters")
    strict = _flag(function.get("strict"), f"{param}.function.strict")
    return {
        "name": name,
        "description": _storable(description, f"{param}.function.description"),
        "parameters": parameters or {"type": "object", "properties": {}},
        **({"strict": True} if strict else {}),
    }


def _allowed_tools(tools: list[dict[str, Any]], choice: Any) -> tuple[list[dict[str, Any]], Any]:
    """Return the tools that a choice leaves to the model, and the choice among these."""
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return tools, choice
    param = "tool_choice.allowed_tools"
    allowed = _mapping(choice.get("allowed_tools"), param)
    named = allowed.get("tools")
    if not isinstance(named, list) or allowed.get("mode") not in ("auto", "required"):
        raise invalid(f"{param} must have a list of tools, and the mode auto or required.", param)
    names = {_mapping(_mapping(tool, param).get("function"), param).get("name") for tool in named}
    if unknown := names - {tool["name"] for tool in tools}:
        raise invalid(f"{param} names no tool of this request: {unknown.pop()!r}.", param)
    return [tool for tool in tools if tool["name"] in names], allowed["mode"]


def _required_tool(choice: Any, tools: list[dict[str, Any]]) -> str:
    """Return the tool that must be called, any of them, or that none may be."""
    names = [tool["name"] for tool in tools]
    if choice == "none" and tools:
        return NO_TOOL
    if choice in (None, "auto", "none"):
        return ""
    if choice == "required":
        if not names:
            raise invalid("tool_choice requires a call, and there are no tools.", "tool_choice")
        return names[0] if len(names) == 1 else ANY_TOOL
    given = _mapping(choice, "tool_choice")
    if given.get("type") not in (None, "function"):
        raise invalid("tool_choice must be auto, none, required or name a function.", "tool_choice.type")
    name = _mapping(given.get("function"), "tool_choice.function").get("name")
    if name not in names:
        raise invalid("tool_choice names no tool of this request.", "tool_choice")
    return str(name)
