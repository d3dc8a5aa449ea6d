"""Conversion of a request to a form that providers accept: names, ids, the order of the history, and tools.

It never fails, and answers are converted back. Parts that have the form already stay byte for byte, so that caches and
signed reasoning stay valid. All others are repaired: otherwise a single call of an unknown tool would make the provider
refuse every later request. The dialog itself keeps the model's own words.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson
import structlog

from dominds.llm.json_text import NotJson, dump, parse
from dominds.llm.messages import ANY_TOOL, NO_TOOL, FilePart, Message, Part, Request, Role, ToolCall, ToolSpec
from dominds.llm.models.model import Form, ModelInfo
from dominds.llm.providers.schemas import Unfit, close_objects, fit_schema, is_closed, original_keys

log = structlog.get_logger(__name__)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")  # OpenAI's bound; Anthropic's letters
NINE = re.compile(r"[a-zA-Z0-9]{9}")
NUMBERED = re.compile(r"functions\.[a-zA-Z0-9_-]{1,64}:\d{1,6}")
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PARALLEL = ("parallel", "multi_tool_use.parallel", "multi_tool_use_parallel")
LIBRARY = re.compile(r"^(?:functions|default_api|tools)[.:_]")
CALL_NUMBER = re.compile(r"[:_]\d+$")
PLAIN_CHARS = 50  # characters of a repaired name that are the original's
NO_RESULT = "(There is no result.)"
LOST_RESULT = "[Result of a tool call that is not here any more]\n"
GO_ON = "[Runtime: go on.]"
KIMI = re.compile(r"kimi|moonshot", re.I)
MISTRAL = re.compile(r"(mi[sx]tr|magistr|devstr|codestr|ministr|pixtr|voxtr)al", re.I)


def form_of(model: ModelInfo) -> Form:
    """Combine the demands of the model's kind with those of the model."""
    name = f"{model.base_url} {model.model_id}"
    is_nine = model.nine_ids or bool(MISTRAL.search(name))
    form = model.kind.form
    return replace(
        form,
        nine=is_nine,
        numbered=bool(KIMI.search(name)),
        alternates=model.alternates,
        description_chars=model.description_chars or form.description_chars,
        most_tools=model.most_tools or form.most_tools,
    )


def fit(request: Request, form: Form) -> Request:
    """Return the request in a form that the provider accepts."""
    tools, left_out = fit_tools(request.tools, form)
    for name, reason in left_out:
        _tell(name, reason)
    force = request.force
    if force and force not in (ANY_TOOL, NO_TOOL):
        force = wire_name(force)
    if force and not (tools if force in (ANY_TOOL, NO_TOOL) else [tool for tool in tools if tool.name == force]):
        force = None
    # A plain history needs no repair. Checking each of 1,000 messages for that took 2 % of a turn.
    messages = request.messages if request.is_plain and not form.alternates else fit_history(request.messages, form)
    if (messages, tools, force) == (request.messages, request.tools, request.force):
        return request
    return replace(request, messages=messages, tools=tools, force=force)


@lru_cache(maxsize=1024)
def _tell(name: str, reason: str) -> None:
    """Log the reason once for each tool, and not with each request."""
    log.warning("tool_left_out", tool=name, reason=reason)


def restore_calls(calls: Iterable[ToolCall], tools: Sequence[ToolSpec]) -> list[ToolCall]:
    """Return an answer's calls with the original names of tools and of their arguments."""
    calls = list(calls)
    offered = {wire_name(tool.name): tool for tool in reversed(tools)} if calls else {}
    calls = [inner for call in calls for inner in _unwrap_parallel(call, offered)]
    names = [named_tool(call.name, offered) for call in calls]
    return [_restore(call, offered[name]) if name else call for call, name in zip(calls, names, strict=True)]


def _unwrap_parallel(call: ToolCall, offered: Collection[str]) -> list[ToolCall]:
    """Return the calls inside a call of OpenAI's tool for parallel calls, which its models call without an offer."""
    if call.name not in PARALLEL or call.name in offered:
        return [call]
    try:
        uses = [(use["recipient_name"], use["parameters"]) for use in parse(call.arguments)["tool_uses"]]
    except (NotJson, TypeError, KeyError):
        return [call]
    calls = [ToolCall("", named_tool(str(name), offered), dump(given).decode()) for name, given in uses]
    if not calls or not all(each.name for each in calls):
        return [call]
    return [replace(calls[0], id=call.id), *calls[1:]]


def named_tool(written: str, offered: Collection[str]) -> str:
    """Return the offered tool that a model names, or an empty text.

    gpt-oss appends marks of its format to names, Gemini and Kimi put the name of a library before them, and Kimi
    appends the number of the call.
    """
    plain = written.partition("<|")[0].strip()
    bare = LIBRARY.sub("", plain)
    return next((name for name in (written, plain, bare, CALL_NUMBER.sub("", bare)) if name in offered), "")


def _restore(call: ToolCall, tool: ToolSpec) -> ToolCall:
    keys = original_keys(_json(tool))
    return ToolCall(call.id, tool.name, _with_keys(call.arguments, keys) if keys else call.arguments)


def _with_keys(arguments: str, keys: dict[str, str]) -> str:
    if not any(key in arguments for key in keys):
        return arguments
    try:
        return dump(_rename(parse(arguments), keys)).decode()
    except NotJson:
        return arguments


def _rename(value: Any, keys: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {keys.get(key, key): _rename(item, keys) for key, item in value.items()}
    return [_rename(item, keys) for item in value] if isinstance(value, list) else value


# Names and ids


@lru_cache(maxsize=4096)
def wire_name(name: str) -> str:
    """Return a name for the tool that every provider accepts. Different names stay different."""
    if NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name[:PLAIN_CHARS]).strip("_") or "tool"
    return f"{'' if plain[0].isalpha() else '_'}{plain}_{_digest(name, 4)}"


def wire_id(call_id: str, form: Form) -> str:
    """Return a call's id in the form that the provider accepts. Different ids stay different."""
    if form.nine:
        return call_id if NINE.fullmatch(call_id) else _nine(call_id)
    if form.numbered and NUMBERED.fullmatch(call_id):
        return call_id
    return call_id if ID.fullmatch(call_id) else f"call_{_digest(call_id, 12)}"


@lru_cache(maxsize=4096)
def _nine(call_id: str) -> str:
    number = int(_digest(call_id, 8), 16)
    return "".join(LETTERS[number // 62**place % 62] for place in range(9))


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


# History


def fit_history(messages: tuple[Message, ...], form: Form) -> tuple[Message, ...]:
    """Put exactly one result after every call, and a call before every result."""
    results = list(_pair(messages, form))
    if form.alternates:
        results = list(_merge_same_roles(results))
    is_same = len(results) == len(messages) and all(map(_is_same, results, messages))
    return messages if is_same else tuple(results)


def _is_same(one: Message, other: Message) -> bool:
    return one is other


def _pair(messages: Iterable[Message], form: Form) -> Iterator[Message]:
    used: set[str] = set()
    waiting: dict[str, list[str]] = {}  # the sent ids of calls without a result, by their original ids
    strays: list[Message] = []
    for given in messages:
        message = _name_parts(given) if given.parts and given.role in (Role.ASSISTANT, Role.TOOL) else given
        if message.role is Role.TOOL:
            sent = waiting.get(message.tool_call_id)
            if sent:
                yield _with_id(message, sent.pop(0))
            else:
                strays.append(Message(Role.USER, LOST_RESULT + message.text))
            continue
        if waiting or strays:
            yield from _answer_open_calls(waiting)
            yield from strays
            waiting, strays = {}, []
        if message.tool_calls:
            calls = [_fit_call(call, form, used) for call in message.tool_calls]
            for call, sent_call in zip(message.tool_calls, calls, strict=True):
                waiting.setdefault(call.id, []).append(sent_call.id)
            is_same = all(map(_is_same_call, calls, message.tool_calls))
            yield message if is_same else replace(message, tool_calls=tuple(calls))
        elif message.role is not Role.ASSISTANT or message.text.strip() or message.provider_items:
            yield message
    yield from _answer_open_calls(waiting)
    yield from strays


def _is_same_call(one: ToolCall, other: ToolCall) -> bool:
    return one is other


def _fit_call(call: ToolCall, form: Form, used: set[str]) -> ToolCall:
    call_id = wire_id(call.id, form)
    number = 1
    while call_id in used:
        number += 1
        call_id = wire_id(f"{call.id}#{number}", form)
    used.add(call_id)
    name = wire_name(call.name)
    return call if (call_id, name) == (call.id, call.name) else ToolCall(call_id, name, call.arguments)


def _answer_open_calls(waiting: dict[str, list[str]]) -> Iterator[Message]:
    return (Message(Role.TOOL, NO_RESULT, tool_call_id=call) for calls in waiting.values() for call in calls)


def _with_id(message: Message, call_id: str) -> Message:
    return message if message.tool_call_id == call_id else replace(message, tool_call_id=call_id)


def _name_parts(message: Message) -> Message:
    """Replace a message's images and files by their labels: only a user's message may hold them."""
    labels = " ".join(f"[{_label(part)}]" for part in message.parts)
    return replace(message, text=f"{message.text}\n{labels}".lstrip(), parts=())


def _label(part: Part) -> str:
    return f"File “{part.name}”" if isinstance(part, FilePart) else part.label


def _merge_same_roles(messages: Iterable[Message]) -> Iterator[Message]:
    """Merge consecutive messages of one role. Calls and results do not count as turns."""
    under_way: Message | None = None
    side = Role.ASSISTANT  # the role of the last turn; this start makes the user begin
    for given in messages:
        if given.tool_calls or given.role is Role.TOOL:
            if under_way is not None:
                yield under_way
            under_way = None
            yield given
            continue
        role = Role.ASSISTANT if given.role is Role.ASSISTANT else Role.USER
        message = given if role is given.role else replace(given, role=role)
        if under_way is not None and under_way.role is role:
            text = "\n\n".join(filter(None, (under_way.text, message.text)))
            under_way = replace(under_way, text=text, parts=(*under_way.parts, *message.parts), provider_items=())
            continue
        if under_way is not None:
            yield under_way
        if role is side:
            other = Role.USER if role is Role.ASSISTANT else Role.ASSISTANT
            yield Message(other, GO_ON if other is Role.USER else "…")
        under_way, side = message, role
    if under_way is not None:
        yield under_way


# Tools


@lru_cache(maxsize=1024)
def _fit_tool(
    name: str, description: str, strict: bool, parameters: bytes, plain_keys: bool, anchored: bool, most: int
) -> ToolSpec | str:
    """Return the tool in a form that providers accept, or the reason why it cannot be offered.

    ``most`` is the longest description in characters; 0 means any.
    """
    try:
        schema = fit_schema(orjson.loads(parameters), plain_keys=plain_keys, anchored=anchored)
    except Unfit as unfit:
        return str(unfit)
    text = description if not most or len(description) <= most else description[: most - 1] + "…"
    if strict and not is_closed(schema := close_objects(schema)):
        _tell(name, "not held to its schema by the provider, since an object in it takes any properties")
        strict = False
    return ToolSpec(wire_name(name), text, schema, strict)


def fit_tools(tools: tuple[ToolSpec, ...], form: Form) -> tuple[tuple[ToolSpec, ...], list[tuple[str, str]]]:
    """Return the tools that can be offered, and for each other tool its name and a sentence for the operator."""
    results: dict[str, ToolSpec] = {}
    left_out: list[tuple[str, str]] = []
    # Single values, since the cache would hash and compare the whole form for each tool.
    demands = form.plain_keys, form.anchored, form.description_chars
    for tool in tools:
        made = _fit_tool(tool.name, str(tool.description or ""), tool.strict, _json(tool), *demands)
        if isinstance(made, ToolSpec) and made.name in results:
            made = "another tool has this name"
        elif isinstance(made, ToolSpec) and form.most_tools and len(results) >= form.most_tools:
            made = f"the provider takes {form.most_tools} tools at most"
        if isinstance(made, str):
            left_out.append((tool.name[:80], f"The tool {tool.name[:80]!r} is not offered to the model: {made}."))
        else:
            results[made.name] = tool if made == tool else made
    return tuple(results.values()), left_out


def _json(tool: ToolSpec) -> bytes:
    try:
        return dump(dict(tool.parameters))
    except (TypeError, ValueError, RecursionError):
        return b'"no JSON"'
