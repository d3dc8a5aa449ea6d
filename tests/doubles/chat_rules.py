"""A request for chat completions, and what every server of the dialect refuses, in OpenAI's words.

Some real servers let one or the other pass (OpenAI itself does not read arguments); none of it is ever meant.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.doubles import images, shapes
from tests.doubles.rules import Offence, Refusal, Rule, choice_without_tools, is_object

PARTS = ("text", "image_url", "file", "input_audio")
ROLES = ("system", "developer", "user", "assistant", "tool")
Reasoning = Literal["reasoning_content", "reasoning", "reasoning_details", "think", "hidden"]
"""Where reasoning is in an answer: a field of that name, ``<think>`` in the content, or nowhere."""


def openai_error(refusal: Refusal) -> Any:
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
    return {"error": {**error, **refusal.more}}


@dataclass(frozen=True)
class Family:
    """A server's traits. ``window`` and ``maximum`` (output) in tokens; ``budgets`` are the fields that bound output.

    ``thinks`` says of a body whether the model reasons; ``words`` replace those of general rules.
    """

    name: str
    model: str
    rules: tuple[Rule, ...] = ()
    window: int = 1_000_000
    maximum: int = 128_000
    budgets: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    reasoning: Reasoning = "reasoning_content"
    thinks: Callable[[Mapping[str, Any]], bool] = lambda body: True
    words: Mapping[str, str] | None = None
    error: Callable[[Refusal], Any] = openai_error
    needs_key: bool = True
    signs_calls: bool = False
    sees: bool = True  # images
    description_chars: int = 0  # of a tool; OpenAI took 1,024 until May 2025, Azure for longer
    alternates: bool = False  # the model's template wants user and assistant in turn


@dataclass(frozen=True)
class ChatRequest:
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    family: Family
    account: str
    model: str
    prompt_tokens: int = 0

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        return list(self.body.get("messages") or ())

    @property
    def thinks(self) -> bool:
        return self.family.thinks(self.body)

    @property
    def budget(self) -> int | None:
        """Tokens of output that are asked for, ``None`` where nobody says."""
        asked = next((self.body[name] for name in self.family.budgets if self.body.get(name) is not None), None)
        return asked if asked is None or asked >= 0 else None  # LM Studio takes -1 for no bound

    @property
    def is_forced(self) -> bool:
        return self.body.get("tool_choice") not in (None, "auto", "none")

    @property
    def calling(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The assistant's messages with calls."""
        return ((at, message) for at, message in enumerate(self.messages) if message.get("tool_calls"))


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def _key(request: ChatRequest) -> Offence:
    has_key = request.headers.get("authorization", "").startswith("Bearer ")
    return None if has_key or not request.family.needs_key else {}


def _model(request: ChatRequest) -> Offence:
    asked = request.body.get("model")
    return None if asked == request.model else {"model": asked}


def _no_messages(request: ChatRequest) -> Offence:
    return None if request.messages else {}


def _role(request: ChatRequest) -> Offence:
    roles = ((at, message.get("role")) for at, message in enumerate(request.messages))
    return next(({"at": at, "role": role} for at, role in roles if role not in ROLES), None)


def _no_content(request: ChatRequest) -> Offence:
    for at, message in enumerate(request.messages):
        if message.get("content") is None and not message.get("tool_calls"):
            return {"at": at}
    return None


def _no_call(request: ChatRequest) -> Offence:
    """A result stands in the row of results behind the call that it names."""
    waiting: set[str] = set()
    for at, message in enumerate(request.messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return {"at": at}
            waiting.discard(message["tool_call_id"])
        else:
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return None


def _no_result(request: ChatRequest) -> Offence:
    for at, message in request.calling:
        missing = [call["id"] for call in message["tool_calls"]]
        for later in request.messages[at + 1 :]:
            if later["role"] != "tool":
                break
            missing = [call for call in missing if call != later.get("tool_call_id")]
        if missing:
            return {"at": at, "ids": ", ".join(missing)}
    return None


def _bad_arguments(request: ChatRequest) -> Offence:
    for at, message in request.calling:
        for position, call in enumerate(message["tool_calls"]):
            if not is_object(call["function"]["arguments"]):
                return {"at": at, "position": position}
    return None


def _unknown_choice(request: ChatRequest) -> Offence:
    choice = request.body.get("tool_choice")
    names = [tool["function"]["name"] for tool in request.body.get("tools") or ()]
    named = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    return {"name": named} if named and named not in names else None


def _not_alternating(request: ChatRequest) -> Offence:
    """Messages of tools and those that only call stand outside of the turns."""
    turns = [m["role"] for m in request.messages if m["role"] in ("user", "assistant") and not m.get("tool_calls")]
    is_fine = all(role == ("user", "assistant")[at % 2] for at, role in enumerate(turns))
    return None if is_fine or not request.family.alternates else {}


def _images(request: ChatRequest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    contents = ((f"messages[{at}].content", message.get("content")) for at, message in enumerate(request.messages))
    return images.parts_with_images(contents)


def _unknown_part(request: ChatRequest) -> Offence:
    for at, message in enumerate(request.messages):
        for place, part in enumerate(content if isinstance(content := message.get("content"), list) else ()):
            if part.get("type") not in (PARTS if message["role"] == "user" else PARTS[:1]):
                return {"at": at, "place": place, "type": part.get("type")}
    return None


def _unseen(request: ChatRequest) -> Offence:
    return None if request.family.sees else next(({"path": path} for path, _ in _images(request)), None)


def _bad_image(request: ChatRequest) -> Offence:
    for path, part in _images(request):
        image = images.image_in(part)
        if image is None or image.problem or image.found_type != image.media_type:
            return {"path": path}
    return None


def _functions(request: ChatRequest, name: str) -> Iterator[tuple[str, Any]]:
    for at, tool in enumerate(request.body.get("tools") or ()):
        yield f"tools[{at}].function.{name}", tool["function"].get(name)


def _called(request: ChatRequest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for at, message in request.calling:
        for position, call in enumerate(message["tool_calls"]):
            yield f"messages[{at}].tool_calls[{position}]", call


def _bad_name(request: ChatRequest) -> Offence:
    history = ((f"{path}.function.name", call["function"].get("name")) for path, call in _called(request))
    return shapes.bad_name([*_functions(request, "name"), *history])


def _long_id(request: ChatRequest) -> Offence:
    return shapes.long_text(((f"{path}.id", call.get("id")) for path, call in _called(request)), 40)


def _double_id(request: ChatRequest) -> Offence:
    ids = [call.get("id") for _, call in _called(request)]
    return {} if len(set(ids)) < len(ids) else None


def _long_description(request: ChatRequest) -> Offence:
    most = request.family.description_chars
    return shapes.long_text(_functions(request, "description"), most) if most else None


def _bad_schema(request: ChatRequest) -> Offence:
    return shapes.bad_schema(_functions(request, "parameters"))


TOO_LONG = (
    "Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a string with length "
    "{length} instead."
)
PROTOCOL = (
    Rule(
        "unknown part",
        _unknown_part,
        "Invalid value: '{type}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and "
        "'file'.",
        code="invalid_value",
        param="messages[{at}].content[{place}].type",
    ),
    Rule(
        "unseen image", _unseen, "Invalid content type. image_url is only supported by certain models.", param="{path}"
    ),
    Rule(
        "bad image",
        _bad_image,
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', "
        "'jpeg', 'gif', 'webp'].",
        code="invalid_image_format",
        param="{path}",
    ),
    Rule("key", _key, "You didn't provide an API key.", 401, "authentication_error"),
    Rule("model", _model, "The model `{model}` does not exist.", 404, code="model_not_found"),
    Rule(
        "no messages",
        _no_messages,
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        code="empty_array",
        param="messages",
    ),
    Rule(
        "role",
        _role,
        "Invalid value: '{role}'. Supported values are: " + ", ".join(f"'{role}'" for role in ROLES) + ".",
        code="invalid_value",
        param="messages[{at}].role",
    ),
    Rule(
        "no content",
        _no_content,
        "Invalid value for 'content': expected a string, got null.",
        param="messages.[{at}].content",
    ),
    Rule(
        "result without call",
        _no_call,
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        param="messages.[{at}].role",
    ),
    Rule(
        "call without result",
        _no_result,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: {ids}",
        param="messages",
    ),
    Rule(
        "arguments",
        _bad_arguments,
        "Invalid 'messages[{at}].tool_calls[{position}].function.arguments': expected a JSON object.",
        param="messages[{at}].tool_calls[{position}].function.arguments",
    ),
    Rule(
        "choice without tools",
        choice_without_tools,
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        param="tool_choice",
    ),
    Rule(
        "unknown choice",
        _unknown_choice,
        "Invalid value for 'tool_choice': no function named '{name}' was specified in the 'tools' parameter.",
        param="tool_choice",
    ),
    Rule("not alternating", _not_alternating, "Conversation roles must alternate user/assistant/user/assistant/..."),
    Rule(
        "name",
        _bad_name,
        "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'.",
        code="invalid_value",
        param="{path}",
    ),
    Rule("long id", _long_id, TOO_LONG, code="string_above_max_length", param="{path}"),
    Rule("double id", _double_id, "Duplicate value for 'tool_call_id'.", param="messages"),
    Rule("long description", _long_description, TOO_LONG, code="string_above_max_length", param="{path}"),
    Rule(
        "schema",
        _bad_schema,
        "Invalid schema for function: {reason}",
        code="invalid_function_parameters",
        param="{path}",
    ),
)
