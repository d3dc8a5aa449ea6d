"""Translation of the body of ``POST /v1/responses`` into that of a chat completion.

A compaction stands for the conversation before it. Reasoning that comes back is ignored, encrypted or not: the dialog
holds its own. So are ``truncation`` and keys of caches: the runtime sees to both.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from dialogs.context.sent import est_tokens_of
from dialogs.errors import NotFound
from dialogs.extras.v1.compacted import unpack
from dialogs.extras.v1.compaction import Teller, is_due, tell_nothing, tell_text, teller_for
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.fields import read_list, read_object
from dialogs.extras.v1.options import check_known, check_offered
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.responses.answer import ResponseWriter
from dialogs.extras.v1.responses.client_tools import BY_CALL, BY_OUTPUT, id_of_output
from dialogs.extras.v1.responses.stored import Place, Stored
from dialogs.extras.v1.responses.tools import Tools, call_of
from dialogs.extras.v1.wire import ChatBody, Prior, Reading, Sent
from dialogs.models import ApiKey

SAME = tuple(
    """
    model stream store metadata temperature top_p parallel_tool_calls user top_logprobs safety_identifier
    """.split()
)
READ = tuple(
    """
    input instructions tools tool_choice previous_response_id reasoning text include max_output_tokens service_tier
    context_management background
    """.split()
)
PASSED_OVER = (
    "truncation",
    "stream_options",
    "client_metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
)
NAMES = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "response_format": "text.format",
    "logprobs": "include",
}
LOGPROBS = "message.output_text.logprobs"
TRIGGER = "compaction_trigger"
ENCRYPTED = "reasoning.encrypted_content"
USUAL_TIERS = (None, "auto", "default")
CALLS = ("function_call", "custom_tool_call", *BY_CALL)
LEFT_OUT = ("reasoning", "web_search_call", "tool_search_call", "tool_search_output")


def read(sent: Sent) -> Reading:
    """Read a request. Raises ``ApiError`` or ``Refusal``."""
    body, tools = sent.body, Tools()
    threshold = _threshold(body.get("context_management"))
    chat = _chat_of(sent, tools, teller_for(sent.key))
    writer = partial(ResponseWriter, body, tools, ENCRYPTED in read_list(body.get("include"), "include"))
    prior = partial(chat.prior, sent, "input")
    if _ends_with_trigger(body):
        return Reading(prior().request, writer, NAMES, prior, is_compaction=True)
    request = chat.request(sent.dialog, sent.policy)
    reading = Reading(request, writer, NAMES, is_background=_is_background(body))
    if threshold is None:
        return reading
    return replace(reading, prior=prior, is_due=lambda: is_due(read_to_count(sent), threshold, _known_tokens(sent)))


def read_to_count(sent: Sent) -> ChatRequest:
    """Read a request whose tokens are counted: with the text of a compaction in the place of what it stands for."""
    return _chat_of(sent, Tools(), tell_text).request(sent.dialog, sent.policy, is_asking=False)


def prior_of(sent: Sent) -> Prior:
    """Read a conversation that is to be compacted."""
    return _chat_of(sent, Tools(), teller_for(sent.key)).prior(sent, "input")


def _chat_of(sent: Sent, tools: Tools, tell: Teller) -> ChatBody:
    body, key = sent.body, sent.key
    for name, value in body.items():
        if value not in (None, False) and name not in (*SAME, *READ, *PASSED_OVER):
            raise invalid(f"{name} is not offered here: leave it out.", name)
    chat = ChatBody({name: body[name] for name in SAME if body.get(name) is not None} | _options(body), names=NAMES)
    tools.add(body.get("tools"), "tools")
    stored = _previous(key, body)
    instructions = body.get("instructions") or (stored.instructions if stored else "")
    if instructions:
        chat.say("system", instructions, "instructions")
    chat.end_instructions()  # unlike them, system messages of the input stay where they were said
    if stored:
        _go_on(chat, key, stored, body)
    _input(chat, tools, key, body.get("input"), tell)
    tools.check()
    chat.options["tool_choice"] = tools.choice(body.get("tool_choice"))
    chat.tools = tools.functions
    return chat


def _is_background(body: dict[str, Any]) -> bool:
    value = body.get("background") or False
    if type(value) is not bool:
        raise invalid("background must be true or false.", "background")
    if value and body.get("store") is False:
        raise invalid("background needs store: its response is read later.", "background")
    return value


def _threshold(value: Any) -> int | None:
    """Return from how many tokens on the client wants a compaction, 0 where that is left open; None for never."""
    threshold = None
    for index, item in enumerate(read_list(value, "context_management")):
        param = f"context_management[{index}]"
        entry = read_object(item, param)
        check_known(entry, ("type", "compact_threshold"), param)
        if entry.get("type") != "compaction":
            raise invalid("type must be compaction.", f"{param}.type")
        threshold = entry.get("compact_threshold") or 0
        if type(threshold) is not int or threshold < 0:
            raise invalid("compact_threshold must be a number of tokens.", f"{param}.compact_threshold")
    return threshold


def _ends_with_trigger(body: dict[str, Any]) -> bool:
    items = body.get("input")
    return isinstance(items, list) and bool(items) and read_object(items[-1], "input").get("type") == TRIGGER


def _known_tokens(sent: Sent) -> int:
    """Return the size of the conversation that a request goes on with by the id of its last response."""
    stored = _previous(sent.key, sent.body)
    newest = stored.turns[-1].generation if stored and stored.turns else None
    if stored is None or newest is None or not stored.is_head:
        return 0
    return (newest.prompt_tokens or est_tokens_of(newest) or 0) + (newest.completion_tokens or 0)


def _options(body: dict[str, Any]) -> dict[str, Any]:
    reasoning, text = read_object(body.get("reasoning"), "reasoning"), read_object(body.get("text"), "text")
    form = read_object(text.get("format"), "text.format")
    check_offered("reasoning", reasoning, "reasoning")
    summary = reasoning.get("summary") or reasoning.get("generate_summary")  # its name before
    options = {
        "include_reasoning": summary is not None,
        "reasoning_effort": reasoning.get("effort"),
        "verbosity": text.get("verbosity"),
        "max_completion_tokens": body.get("max_output_tokens"),
        "logprobs": LOGPROBS in read_list(body.get("include"), "include"),
        "service_tier": None if body.get("service_tier") in USUAL_TIERS else body["service_tier"],
    }
    if form.get("type") == "json_schema":
        options["response_format"] = {
            "type": "json_schema",
            "json_schema": {name: value for name, value in form.items() if name != "type"},
        }
    elif form.get("type") not in (None, "text"):
        options["response_format"] = form
    return {name: value for name, value in options.items() if value is not None}


def _previous(key: ApiKey, body: dict[str, Any]) -> Stored | None:
    given = body.get("previous_response_id")
    if given is None:
        return None
    try:
        return Stored(key, Place.of_id(given))
    except NotFound:
        words = f"Previous response with id {given!r} not found."
        raise ApiError(400, "previous_response_not_found", words, param="previous_response_id") from None


def _go_on(chat: ChatBody, key: ApiKey, stored: Stored, body: dict[str, Any]) -> None:
    """Go on with the dialog if the response is its end, and otherwise from that place of the conversation. Raises
    ``ApiError`` for a place that is not there yet.
    """
    if stored.is_head and stored.dialog.agent_id == body.get("model"):
        chat.options["metadata"] = {**read_object(body.get("metadata"), "metadata"), "dialog_id": str(stored.dialog.pk)}
        chat.is_current = lambda: Stored(key, stored.place).is_head
    else:
        if stored.is_under_way:
            words = "The previous response is under way, and something else follows it already. Wait for its end."
            raise ApiError(409, "previous_response_under_way", words, param="previous_response_id")
        stored.say_all(chat, "previous_response_id")


# Items


def _input(chat: ChatBody, tools: Tools, key: ApiKey, value: Any, tell: Teller) -> None:
    items = [{"role": "user", "content": value}] if isinstance(value, str) else read_list(value, "input")
    known: set[Place] = set()
    newest = max(
        (at for at, item in enumerate(items) if isinstance(item, dict) and item.get("type") == "compaction"), default=0
    )
    for index, given in enumerate(items):
        param = f"input[{index}]"
        item = read_object(given, param)
        match item.get("type") or "message":
            case "message":
                chat.say(str(item.get("role")), _content(item.get("content"), f"{param}.content"), param)
            case str(kind) if kind in CALLS:
                check_offered("call", item, param)
                _add_call(chat, item, param, known)
            case "function_call_output" | "custom_tool_call_output":
                output = _content(item.get("output"), f"{param}.output")
                chat.say("tool", output, param, tool_call_id=item.get("call_id"))
            case str(kind) if kind in BY_OUTPUT:
                chat.say("tool", BY_OUTPUT[kind].output(item, param), param, tool_call_id=id_of_output(item))
            case "item_reference":
                _add_stored(chat, key, item.get("id"), known, param)
            case "compaction":
                _tell_compaction(chat, item, param, tell if index == newest else tell_nothing)
            case "compaction_trigger":
                if index + 1 < len(items):
                    raise invalid("A compaction_trigger must be the last item.", param)
            case "additional_tools":
                tools.add(item.get("tools"), f"{param}.tools")
            case kind if kind not in LEFT_OUT:
                raise invalid(f"Items of type {kind!r} are not understood.", f"{param}.type")


def _tell_compaction(chat: ChatBody, item: dict[str, Any], param: str, tell: Teller) -> None:
    compacted = unpack(item.get("encrypted_content"))
    if compacted is None:
        words = "This compaction was made elsewhere, and only its maker can read it: send what it stands for."
        raise ApiError(400, "invalid_encrypted_content", words, param=f"{param}.encrypted_content")
    tell(chat, compacted, param)


def _add_call(chat: ChatBody, item: dict[str, Any], param: str, known: set[Place]) -> None:
    """Put calls into the answer before them. Vercel's AI SDK refers to a text and tells its calls beside it, which the
    reference has told already.
    """
    if not chat.messages or chat.messages[-1]["role"] != "assistant":
        chat.say("assistant", "", param)
    calls, call = chat.messages[-1].setdefault("tool_calls", []), call_of(item, param)
    if not known or all(other["id"] != call["id"] for other in calls):
        calls.append(call)


def _add_stored(chat: ChatBody, key: ApiKey, item_id: Any, known: set[Place], param: str) -> None:
    """Replace a reference to a stored item by the whole of its response, which all its items name."""
    place = Place.of_id(item_id)
    if place is None or place not in known:
        try:
            Stored(key, place).say_answer(chat, param)
        except NotFound:
            raise ApiError(404, "item_not_found", f"Item with id {item_id!r} not found.", param=param) from None
    if place is not None:
        known.add(place)


def _content(value: Any, param: str) -> Any:
    if value is None or isinstance(value, str):
        return value
    return [_part(read_object(part, f"{param}[{index}]")) for index, part in enumerate(read_list(value, param))]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """Translate a part. An unknown one stays, and is refused by its type."""
    match part.get("type"):
        case "input_text" | "output_text":
            return {"type": "text", "text": part.get("text")}
        case "input_image":
            return {"type": "image_url", "image_url": {"url": part.get("image_url"), "detail": part.get("detail")}}
        case "input_file":
            given = {name: part.get(name) for name in ("filename", "file_data", "detail")}
            return {"type": "file", "file": given}
    return part
