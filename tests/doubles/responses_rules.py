"""What OpenAI's Responses API refuses, by model family."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.doubles import images, shapes
from tests.doubles.rules import Offence, Rule, is_object
from tests.doubles.signing import Signer

SEALER = Signer("openai")
FIELDS = set(
    "model input instructions tools tool_choice parallel_tool_calls reasoning include store stream max_output_tokens "
    "temperature top_p truncation previous_response_id text metadata user prompt_cache_key prompt_cache_retention "
    "prompt_cache_options context_management service_tier safety_identifier background stream_options "
    "client_metadata top_logprobs".split()
)
LOGPROBS = "message.output_text.logprobs"
ITEMS = ("message", "reasoning", "function_call", "function_call_output", "item_reference", "compaction")


@dataclass(frozen=True)
class Family:
    """Tokens. What is left of ``window`` beside the greatest output is the input limit."""

    name: str
    window: int = 1_050_000
    maximum: int = 128_000
    efforts: tuple[str, ...] = ("none", "low", "medium", "high", "xhigh", "max")

    @property
    def input_limit(self) -> int:
        return self.window - self.maximum


FAMILIES = {
    family.name: family
    for family in (
        Family("openai-5.5", efforts=("none", "low", "medium", "high", "xhigh")),
        Family("openai-5.6"),
        Family("openai-6.1", efforts=("low", "medium", "high", "xhigh", "max")),  # thinks always
    )
}


@dataclass(frozen=True)
class ResponsesRequest:
    """``items`` is the whole input, that of earlier stored responses before it.

    ``reasoning_of`` names, for every id that was given out, the reasoning item that it came with.
    """

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    family: Family
    account: str
    items: Sequence[Mapping[str, Any]] = ()
    stored: Mapping[str, Any] = field(default_factory=dict)
    reasoning_of: Mapping[str, str] = field(default_factory=dict)
    prompt_tokens: int = 0


def kind_of(item: Mapping[str, Any]) -> str:
    return str(item.get("type") or "message")


def parts_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = item.get("content")
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content or ())


def _key(request: ResponsesRequest) -> Offence:
    return None if request.headers.get("authorization", "").startswith("Bearer ") else {}


def _unknown(request: ResponsesRequest) -> Offence:
    return next(({"field": name} for name in request.body if name not in FIELDS), None)


def _missing(request: ResponsesRequest) -> Offence:
    return next(({"field": name} for name in ("model", "input") if name not in request.body), None)


def _small_output(request: ResponsesRequest) -> Offence:
    asked = request.body.get("max_output_tokens") or 16
    return {"asked": asked} if asked < 16 else None


def _great_output(request: ResponsesRequest) -> Offence:
    asked, maximum = request.body.get("max_output_tokens") or 0, request.family.maximum
    return {"asked": asked, "maximum": maximum} if asked > maximum else None


def _sampling(request: ResponsesRequest) -> Offence:
    return next(({"field": name} for name in ("temperature", "top_p") if request.body.get(name) not in (None, 1)), None)


def _probable_thoughts(request: ResponsesRequest) -> Offence:
    is_asked = LOGPROBS in (request.body.get("include") or ()) or bool(request.body.get("top_logprobs"))
    return {} if is_asked and (request.body.get("reasoning") or {}).get("effort") != "none" else None


def _effort(request: ResponsesRequest) -> Offence:
    effort = (request.body.get("reasoning") or {}).get("effort") or "low"
    supported = ", ".join(f"'{value}'" for value in request.family.efforts)
    result = {"effort": effort, "model": request.body["model"], "supported": supported}
    return result if effort not in request.family.efforts else None


def _nested_tool(request: ResponsesRequest) -> Offence:
    tools = enumerate(request.body.get("tools") or ())
    return next(({"at": at} for at, tool in tools if tool["type"] == "function" and "name" not in tool), None)


def _unknown_choice(request: ResponsesRequest) -> Offence:
    choice = request.body.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    named = choice["tools"] if choice["type"] == "allowed_tools" else [choice]
    names = {tool.get("name") for tool in request.body.get("tools") or ()}
    return next(({"name": tool.get("name")} for tool in named if tool.get("name") not in names), None)


def _choice_without_tools(request: ResponsesRequest) -> Offence:
    is_free = request.body.get("tool_choice") in (None, "auto", "none")
    return None if is_free or request.body.get("tools") else {}


def _unknown_item(request: ResponsesRequest) -> Offence:
    return next(({"at": at, "kind": kind_of(i)} for at, i in enumerate(request.items) if kind_of(i) not in ITEMS), None)


def _not_kept(request: ResponsesRequest) -> Offence:
    """What was not stored is there only where its content is sent along."""
    for item in request.items:
        is_bare = kind_of(item) == "reasoning" and not item.get("encrypted_content")
        if (is_bare or kind_of(item) == "item_reference") and item.get("id") not in request.stored:
            return {"id": item.get("id")}
    return None


def _foreign(request: ResponsesRequest) -> Offence:
    """Another account's or provider's reasoning, or a changed one."""
    for item in request.items:
        sealed = item.get("encrypted_content")
        if sealed and (SEALER.open(sealed) or {}).get("account") != request.account:
            return {"start": sealed[:4], "end": sealed[-4:]}
    return None


def _lonely_reasoning(request: ResponsesRequest) -> Offence:
    """Reasoning stands before the call or the message that it led to."""
    for at, item in enumerate(request.items):
        if kind_of(item) != "reasoning":
            continue
        rest = (later for later in request.items[at + 1 :] if kind_of(later) != "reasoning")
        following = next(rest, {"role": "user"})
        is_answer = kind_of(following) == "message" and following.get("role") == "assistant"
        if not is_answer and kind_of(following) not in ("function_call", "item_reference"):
            return {"id": item.get("id")}
    return None


def _lonely_output(request: ResponsesRequest) -> Offence:
    """A call or message that is sent with its id needs the reasoning that it came with."""
    there = {item.get("id") for item in request.items}
    for item in request.items:
        needed = request.reasoning_of.get(item.get("id", ""))
        if needed and needed not in there:
            return {"id": item["id"], "kind": kind_of(item), "reasoning": needed}
    return None


def _calls(request: ResponsesRequest, kind: str) -> Iterator[str]:
    return (str(item["call_id"]) for item in request.items if kind_of(item) == kind)


def _no_call(request: ResponsesRequest) -> Offence:
    seen: set[str] = set()
    for item in request.items:
        if kind_of(item) == "function_call":
            seen.add(str(item["call_id"]))
        if kind_of(item) == "function_call_output" and item["call_id"] not in seen:
            return {"id": item["call_id"]}
    return None


def _no_output(request: ResponsesRequest) -> Offence:
    done = set(_calls(request, "function_call_output"))
    return next(({"id": call} for call in _calls(request, "function_call") if call not in done), None)


def _bad_arguments(request: ResponsesRequest) -> Offence:
    for at, item in enumerate(request.items):
        if kind_of(item) == "function_call" and not is_object(item.get("arguments")):
            return {"at": at}
    return None


def _too_long(request: ResponsesRequest) -> Offence:
    is_cut = request.body.get("truncation") == "auto"
    return {} if request.prompt_tokens > request.family.input_limit and not is_cut else None


def _bad_image(request: ResponsesRequest) -> Offence:
    contents = ((f"input[{at}].content", item.get("content")) for at, item in enumerate(request.items))
    for path, part in images.parts_with_images(contents):
        image = images.image_in(part)
        if image is None or image.problem or part["type"] != "input_image":
            return {"path": path}
    return None


def _functions(request: ResponsesRequest, name: str) -> Iterator[tuple[str, Any]]:
    for at, tool in enumerate(request.body.get("tools") or ()):
        if tool["type"] == "function":
            yield f"tools[{at}].{name}", tool.get(name)


def _called(request: ResponsesRequest, name: str) -> Iterator[tuple[str, Any]]:
    for at, item in enumerate(request.items):
        if kind_of(item) == "function_call":
            yield f"input[{at}].{name}", item.get(name)


def _bad_name(request: ResponsesRequest) -> Offence:
    return shapes.bad_name([*_functions(request, "name"), *_called(request, "name")])


def _long_id(request: ResponsesRequest) -> Offence:
    return shapes.long_text(_called(request, "call_id"), 64)


def _double_id(request: ResponsesRequest) -> Offence:
    ids = list(_calls(request, "function_call"))
    return {} if len(set(ids)) < len(ids) else None


def _bad_schema(request: ResponsesRequest) -> Offence:
    return shapes.bad_schema(_functions(request, "parameters"))


def _many_tools(request: ResponsesRequest) -> Offence:
    count = len(request.body.get("tools") or ())
    return {"count": count} if count > 128 else None


TOO_LONG = (
    "Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a string with length "
    "{length} instead."
)
SHAPE = (
    Rule(
        "key",
        _key,
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
        401,
    ),
    Rule("unknown field", _unknown, "Unknown parameter: '{field}'.", code="unknown_parameter", param="{field}"),
    Rule(
        "missing field",
        _missing,
        "Missing required parameter: '{field}'.",
        code="missing_required_parameter",
        param="{field}",
    ),
    Rule(
        "small output",
        _small_output,
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {asked} instead.",
        code="integer_below_min_value",
        param="max_output_tokens",
    ),
    Rule(
        "great output",
        _great_output,
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= {maximum}, but got {asked} "
        "instead.",
        code="integer_above_max_value",
        param="max_output_tokens",
    ),
    Rule("sampling", _sampling, "Unsupported parameter: '{field}' is not supported with this model.", param="{field}"),
    Rule("logprobs", _probable_thoughts, "logprobs are not supported with reasoning models.", param="include"),
    Rule(
        "effort",
        _effort,
        "Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: {supported}.",
        code="unsupported_value",
        param="reasoning.effort",
    ),
    Rule(
        "nested tool",
        _nested_tool,
        "Missing required parameter: 'tools[{at}].name'.",
        code="missing_required_parameter",
        param="tools[{at}].name",
    ),
    Rule(
        "choice without tools",
        _choice_without_tools,
        "Tool choice 'required' must be specified with 'tools' parameter.",
        param="tool_choice",
    ),
    Rule(
        "unknown choice", _unknown_choice, "Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice"
    ),
    Rule(
        "name",
        _bad_name,
        "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'.",
        code="invalid_value",
        param="{path}",
    ),
    Rule("long id", _long_id, TOO_LONG, code="string_above_max_length", param="{path}"),
    Rule("double id", _double_id, "Duplicate function call with the same call_id.", param="input"),
    Rule(
        "schema",
        _bad_schema,
        "Invalid schema for function: {reason}",
        code="invalid_function_parameters",
        param="{path}",
    ),
    Rule(
        "many tools",
        _many_tools,
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length "
        "{count} instead.",
        code="array_above_max_length",
        param="tools",
    ),
)
ITEM_RULES = (
    Rule(
        "unknown item",
        _unknown_item,
        "Invalid value: '{kind}'. Supported values are: " + ", ".join(f"'{kind}'" for kind in ITEMS) + ".",
        code="invalid_value",
        param="input[{at}]",
    ),
    Rule(
        "bad image",
        _bad_image,
        "The image data you provided does not represent a valid image. Please check your input and try again with one "
        "of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
        code="invalid_value",
        param="{path}",
    ),
    Rule(
        "not kept",
        _not_kept,
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` "
        "set to true, or remove this item from your input.",
        404,
        param="input",
    ),
    Rule(
        "foreign reasoning",
        _foreign,
        "The encrypted content {start}...{end} could not be verified.",
        code="invalid_encrypted_content",
    ),
    Rule(
        "lonely reasoning",
        _lonely_reasoning,
        "Item '{id}' of type 'reasoning' was provided without its required following item.",
        param="input",
    ),
    Rule(
        "lonely output",
        _lonely_output,
        "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'.",
        param="input",
    ),
    Rule(
        "output without call", _no_call, "No tool call found for function call output with call_id {id}.", param="input"
    ),
    Rule("call without output", _no_output, "No tool output found for function call {id}.", param="input"),
    Rule(
        "arguments",
        _bad_arguments,
        "Invalid 'input[{at}].arguments': expected a JSON object.",
        param="input[{at}].arguments",
    ),
)
SIZE = (
    Rule(
        "too long",
        _too_long,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
        param="input",
    ),
)
