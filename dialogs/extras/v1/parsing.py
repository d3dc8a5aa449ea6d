"""Reader of the body of ``POST /v1/chat/completions``. What cannot be honoured is refused with the field's name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from dialogs.extras.v1.chat_messages import check_end, messages_of
from dialogs.extras.v1.chat_tools import allowed_tools, required_tool_of, tools_of
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.fields import read_flag, read_object, storable
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.options import params_in

MAX_END_USER = 200
NOTICE_MODES = ("text", "comment", "off")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, whatever its protocol.

    ``instructions`` are the system messages at the beginning, ``tools`` are in the form of ``Client.tools``, and
    ``params`` are what it asks of the model. ``notices`` is empty where it does not say. ``labels`` are its metadata,
    which are sent back as they came. ``is_current`` says whether what was read of the dialog that it names still holds.
    """

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
    is_asking: bool = True  # if not, its conversation is stored and nobody answers it
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
    """Read a request; ``dialog_header`` and ``policy`` came as headers. Raises ``ApiError``.

    Bodies of other protocols were translated into this one: their first ``instructions_end`` messages are the
    instructions. Otherwise these are the first system message. A request that is not ``is_asking`` may end with an
    answer.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("Name an agent: GET /v1/models lists them.", "model")
    metadata = read_object(body.get("metadata"), "metadata")
    options = _stream_options(body.get("stream_options")) or _usage_options(body.get("usage"))
    tools, choice = allowed_tools(tools_of(body), body.get("tool_choice"))
    instructions, messages = messages_of(body.get("messages"), instructions_end)
    if is_asking:
        check_end(messages, len(body["messages"]))
    return ChatRequest(
        model=storable(model, "model"),
        messages=messages,
        instructions=instructions,
        tools=tools,
        required_tool=required_tool_of(choice, tools),
        stream=read_flag(body.get("stream"), "stream"),
        include_usage=read_flag(options.get("include_usage"), "stream_options.include_usage"),
        include_reasoning=read_flag(body.get("include_reasoning"), "include_reasoning"),
        notices=_notices(metadata.get("notices")),
        dialog_id=_dialog_id(metadata.get("dialog_id") or dialog_header or None),
        end_user=_end_user(body),
        params=params_in(body),
        labels=metadata,
        store=body.get("store") is None or read_flag(body["store"], "store"),
        policy=policy,
        is_asking=is_asking,
    )


def _stream_options(given: Any) -> dict[str, Any]:
    options = read_object(given, "stream_options")
    for name, value in options.items():
        if name != "include_usage" and value not in (None, False):
            raise invalid(f"stream_options.{name} is not offered here: leave it out.", f"stream_options.{name}")
    return options


def _usage_options(given: Any) -> dict[str, Any]:
    """Read OpenRouter's way to ask for the counts of a stream."""
    return {"include_usage": read_object(given, "usage").get("include")}


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
    return storable(value, param)


def _dialog_id(value: Any) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(str(value))
    except ValueError:
        raise ApiError(404, "dialog_not_found", f"There is no dialog {value!r}.", param="metadata.dialog_id") from None
