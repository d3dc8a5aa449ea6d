"""OpenAI's chat completions, the wire format that most servers speak."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from dominds import budgets
from dominds.llm.complaints import VAGUE, complaint_of_payload
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import openai_exchange
from dominds.llm.json_text import arguments_text, dump, is_whole
from dominds.llm.messages import (
    ANY_TOOL,
    NO_TOOL,
    FilePart,
    ImagePart,
    Message,
    Part,
    Request,
    Role,
    ToolCall,
    ToolSpec,
)
from dominds.llm.models.model import Echo, Forcing, ModelInfo, ProviderKind
from dominds.llm.models.params import in_body, turn_thinking_off
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken, replay
from dominds.llm.providers.listed_window import listed_window
from dominds.llm.providers.message_json import MessageJson
from dominds.llm.providers.outgoing import fit, form_of
from dominds.llm.providers.parts import base64_of, data_url, ends_with_files, in_order, refuse_unseen
from dominds.llm.providers.reading import (
    AnswerReader,
    Complained,
    arguments_in,
    objects_of,
    refuse_errors,
    spoken_in,
    text_inside,
    whole_number,
)
from dominds.llm.providers.wire import WireStream
from dominds.llm.stream import StreamEvent, ToolCallDelta
from dominds.llm.usage import Shares, UsageReport, UsageUnavailable, first_of, part, usage_from

REASONING_FIELDS = (
    "reasoning_content",  # most
    "reasoning",  # vLLM, OpenRouter
    "thinking",  # Ollama
    "reasoning_text",  # Copilot
)
PIECE_FIELDS = frozenset({"index", "delta", "finish_reason", "logprobs"})  # the fields of a choice that is only text
TEXT_FIELDS = frozenset({"role", "content"})  # the fields of such a choice's delta
GROWING = ("text", "summary", "data", "signature")  # fields of a reasoning detail that arrive in pieces
# Google accepts this instead of a signature, for calls that another model made.
NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A provider that speaks chat completions at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = request_body(request, owner, self.model)
        exchange = openai_exchange(self.endpoint, "/chat/completions", body, has_files=ends_with_files(request))
        return WireStream(exchange, ChatReader(request, owner, self.model.echo), self.endpoint)


def connect(model: ModelInfo, key: str) -> OpenAIChat:
    return OpenAIChat(Endpoint(model.base_url, key), model)


OPENAI_COMPATIBLE = ProviderKind(
    "openai-compatible",
    connect,
    label="OpenAI-compatible (chat completions)",
    takes_several_system=True,
    embeds=True,
    modalities=("text", "image"),
    loaded_window=listed_window,
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> bytes:
    form = form_of(model)
    request = fit(request, form)
    # Templates of local models fail on null in place of a text.
    silence = "" if model.kind.is_local else None
    names = _names_for(model.echo, request.messages)
    write = partial(_write, owner=owner, echo=model.echo, names=names, silence=silence)
    messages = _MESSAGES.json((request.conversation, owner, model.echo, form, silence), request.messages, write)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": orjson.Fragment(b"[%b]" % b",".join(filter(None, (_system(request.instructions), messages)))),
        "stream": True,
        "stream_options": {"include_usage": True},
        **in_body(model.model_params),
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force == NO_TOOL:
            body["tool_choice"] = "none"
        elif request.force and model.forcing is not Forcing.NONE:
            body["tool_choice"] = _choice(request.force, request.tools, model.forcing)
            turn_thinking_off(body, model.thinking_off)
    if request.max_output_tokens is not None:
        body[model.max_tokens_field] = request.max_output_tokens
    return dump(body)


def _choice(name: str, tools: tuple[ToolSpec, ...], forcing: Forcing) -> Any:
    """Return ``tool_choice``. If only one tool is offered, "required" forces it: fewer servers know the object form."""
    if name == ANY_TOOL or len(tools) == 1 or forcing is Forcing.REQUIRED:
        return "required"
    return {"type": "function", "function": {"name": name}}


def _system(instructions: str) -> bytes:
    return dump({"role": "system", "content": instructions}) if instructions else b""


def _names_for(echo: Echo, messages: Iterable[Message]) -> dict[str, str]:
    """Map ids of calls to names of tools, for Google, which refuses results that do not name their tool."""
    return {call.id: call.name for one in messages for call in one.tool_calls} if echo is Echo.SIGNATURES else {}


def _write(
    messages: Sequence[Message], owner: Owner, echo: Echo, names: Mapping[str, str], silence: str | None
) -> bytes:
    written = [  # plain messages are written inline: a function call for each takes longer than writing its JSON
        _rich_message(message, owner, echo, names, silence)
        if message.tool_calls or message.role is Role.TOOL or message.provider_items or message.parts
        else {"role": message.role, "content": message.text}
        for message in messages
    ]
    return dump(written)[1:-1]


_MESSAGES = MessageJson()


def _rich_message(
    message: Message, owner: Owner, echo: Echo, names: Mapping[str, str], silence: str | None
) -> dict[str, Any]:
    """Write a result, an answer with calls or reasoning, or a message with parts."""
    match message.role:
        case Role.TOOL:
            call = message.tool_call_id
            named = {"name": names[call]} if call in names else {}
            return {"role": "tool", "tool_call_id": call, **named, "content": message.text}
        case Role.USER | Role.SYSTEM:
            return {"role": message.role, "content": [*map(_part, in_order(message))]}
        case Role.ASSISTANT:
            return _answer(message, owner, echo, silence)


def _answer(message: Message, owner: Owner, echo: Echo, silence: str | None) -> dict[str, Any]:
    opaque = {
        key: value for piece in replay(owner, message) if isinstance(piece, Opaque) for key, value in piece.item.items()
    }
    extras = opaque.pop("calls", {})
    if echo is Echo.NEVER or (echo is Echo.CALLS and not message.tool_calls):
        for name in REASONING_FIELDS:
            opaque.pop(name, None)
    elif echo is Echo.CALLS and not any(name in opaque for name in REASONING_FIELDS):
        opaque[REASONING_FIELDS[0]] = ""
    answer = {"role": "assistant", "content": message.text or (silence if message.tool_calls else ""), **opaque}
    if message.tool_calls:
        if echo is Echo.SIGNATURES and not extras:
            extras = {"0": NO_SIGNATURE}
        answer["tool_calls"] = [_call(call, extras.get(str(at))) for at, call in enumerate(message.tool_calls)]
    return answer


def _call(call: ToolCall, extra: Any) -> dict[str, Any]:
    # Several servers parse the arguments of past calls and refuse the request when they are malformed.
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    written = {"id": call.id, "type": "function", "function": function}
    return {**written, "extra_content": extra} if extra else written


def _part(given: str | Part) -> dict[str, Any]:
    match given:
        case str():
            return {"type": "text", "text": given}
        case ImagePart():
            detail = {"detail": given.detail} if given.detail else {}
            return {"type": "image_url", "image_url": {"url": data_url(given), **detail}}
        case FilePart(name, media_type):
            content = f"data:{media_type};base64,{base64_of(given)}"
            return {"type": "file", "file": {"filename": name, "file_data": content}}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


@dataclass(slots=True)
class _CallUnderWay:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    chars: int = 0  # characters of the arguments
    extra: Any = None

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    def is_another(self, call_id: str, name: str, arguments: str, offered: Collection[str]) -> bool:
        """Check whether a piece at this call's place begins another call.

        Some servers number all parallel calls 0, give them no ids, or send the name with each piece, even with a new id
        each time.
        """
        if not name or not self.name:
            return False
        if is_whole(self.text):
            return True
        if call_id and self.id and call_id != self.id:
            return name != self.name or not self.text or arguments.lstrip()[:1] in ("", "{")
        return name != self.name and not self._grown_name(name, offered)

    def add_name(self, name: str, offered: Collection[str]) -> None:
        self.name = self._grown_name(name, offered) if self.name and name not in ("", self.name) else self.name or name

    def _grown_name(self, name: str, offered: Collection[str]) -> str:
        """Return this call's name with a further piece of it, or an empty text if the piece is another name.

        Gemini and some gateways send names in pieces, as they send arguments.
        """
        if self.name in offered and name in offered:
            return ""
        grown = name if name.startswith(self.name) else self.name + name
        is_begun = bool(self.text) and name not in offered  # amid arguments no unknown tool begins
        return grown if is_begun or any(one.startswith(grown) for one in offered) else ""

    def is_repeated(self, call_id: str, name: str, arguments: str) -> bool:
        """Check whether a piece repeats this whole call, since some servers repeat everything at the end."""
        is_alike = call_id and (call_id, name, len(arguments)) == (self.id, self.name, self.chars)
        return bool(is_alike) and arguments == self.text and is_whole(arguments)


class ChatReader(AnswerReader):
    """A reader of chunks up to ``[DONE]``."""

    def __init__(self, request: Request, owner: Owner, echo: Echo) -> None:
        super().__init__(request, owner, is_thinking=echo is not Echo.NEVER)
        self._echo = echo
        self._reasoning: dict[str, list[str]] = {}  # pieces by field; an empty field counts as well
        self._details: list[dict[str, Any]] = []
        self._extra: Any = None
        self._calls: list[_CallUnderWay] = []
        self._call_of_index: dict[int, _CallUnderWay] = {}
        self._call_of_id: dict[str, _CallUnderWay] = {}
        self._has_deltas = False
        self._whole = ""  # the text so far of an answer that comes as whole messages

    def read_document(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        groq = document.get("x_groq")
        if usage := document.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None):
            self.note_counts(usage)
        choices = document.get("choices")
        if choices:  # mostly one, but Copilot sends the text in a first choice and the calls in a second
            events = [event for choice in objects_of(choices) for event in self._read_choice(choice)]
            if self.end:
                self.note_fields(document)
            return events
        if choices is None and not document.get("usage") and _is_complaint(document):
            raise Complained(document)  # an error without a field ``error``, as some gateways send it
        return ()

    def _read_choice(self, choice: dict[str, Any]) -> Iterable[StreamEvent]:
        if text := _plain_text(choice):
            self._has_deltas = True
            return self.say(text)
        refuse_errors(choice, choice.get("delta"), choice.get("message"))  # OpenRouter has errors in the choice
        self.note_end(choice.get("finish_reason"))
        self.note_native_end(choice.get("native_finish_reason"))  # OpenRouter
        self._note_logprobs(choice.get("logprobs"))
        delta = self._delta_of(choice)
        for holder in (choice, delta):  # Moonshot has the usage in the choice
            self.note_counts(holder.get("usage"))
        events: list[StreamEvent] = list(self._read_reasoning(delta))
        self._extra = delta.get("extra_content") or self._extra
        if annotations := objects_of(delta.get("annotations")):
            self.fields["annotations"] = [*self.fields.get("annotations", ()), *annotations]
        for text, is_thought in spoken_in(delta.get("content")):
            if is_thought and text:
                self._reasoning.setdefault(REASONING_FIELDS[0], []).append(text)
            events += self.think(text) if is_thought else self.say(text)
        events += self.refuse(text_inside(delta.get("refusal")))
        pieces = objects_of(delta.get("tool_calls") or choice.get("tool_calls"))
        if legacy := delta.get("function_call"):
            pieces.append({"function": legacy})
        named: set[int] = set()  # places of the calls that this chunk has named so far
        for at, piece in enumerate(pieces):
            if text := self._read_call(piece, at, named):
                events.append(ToolCallDelta(text))
        return events

    def _note_logprobs(self, reported: Any) -> None:
        """Add a piece's tokens, each with its probability, to those of the pieces before: of ``content`` or
        ``refusal``.
        """
        for name, tokens in reported.items() if isinstance(reported, dict) else ():
            if tokens := objects_of(tokens):
                known = self.fields.setdefault("logprobs", {}).setdefault(name, [])
                known += tokens
                budgets.LOGPROBS.check(len(known))

    def _delta_of(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Return the new part of a choice. Some servers send whole messages: once, growing, or after all deltas."""
        delta = choice.get("delta") or {}
        if isinstance(delta, str):
            delta = {"content": delta}
        if any(value for name, value in delta.items() if name != "role"):
            self._has_deltas = True
            return delta
        message = choice.get("message") or choice.get("text")
        message = message if isinstance(message, dict) else {"content": message}
        if self._has_deltas:
            calls = None if self._calls else message.get("tool_calls")
            return {**delta, "tool_calls": calls} if calls else delta
        content = message.get("content")
        if isinstance(content, str):
            content = content.removeprefix(self._whole)
            self._whole += content
        return {**message, "content": content}

    def _read_reasoning(self, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        """Read reasoning. Some gateways send it in several fields: the first is shown, and all are stored."""
        shown = ""
        for name in REASONING_FIELDS:
            if (piece := delta.get(name)) is not None:
                text = text_inside(piece)
                self._reasoning.setdefault(name, []).append(text)
                shown = shown or text
        for detail in delta.get("reasoning_details") or ():
            if isinstance(detail, dict):
                added = self._read_detail(detail)
                shown = shown or added
        yield from self.think(shown)

    def _read_detail(self, detail: dict[str, Any]) -> str:
        """Add a piece to its detail, and return its new text. MiniMax repeats the earlier text in each piece."""
        place = (detail.get("index"), detail.get("type"))
        known = next((each for each in self._details if (each.get("index"), each.get("type")) == place), None)
        if known is None:
            self._details.append(dict(detail))
            return _visible_text(detail)
        before = _visible_text(known)
        for name, value in detail.items():
            old = known.get(name)
            if name in GROWING and isinstance(old, str) and isinstance(value, str):
                known[name] = value if len(value) > len(old) and old and value.startswith(old) else old + value
            elif value is not None:
                known[name] = value
        return _visible_text(known)[len(before) :]

    def _read_call(self, piece: dict[str, Any], at: int, named: set[int]) -> str:
        """Add a piece to its tool call, and return the piece's text. ``at`` is its place in the chunk."""
        function = piece.get("function") or piece.get("custom") or piece
        name, arguments = (
            str(function.get("name") or ""),
            arguments_in(function.get("arguments", function.get("input"))),
        )
        call_id = str(piece.get("id") or "")
        if call_id and any(call.is_repeated(call_id, name, arguments) for call in self._calls):
            return ""
        index = whole_number(piece.get("index"))
        place = at if index is None else index
        call = self._call_of(index, place, call_id, name, arguments, is_named=place in named)
        named |= {place} if name else set()
        if call_id and not call.id:
            call.id, self._call_of_id[call_id] = call_id, call
        is_named_now = bool(name) and not call.name
        call.add_name(name, self.offered)
        call.arguments.append(arguments)
        call.chars += len(arguments)
        call.extra = piece.get("extra_content") or call.extra
        return name + arguments if is_named_now else arguments

    def _call_of(
        self, index: int | None, place: int, call_id: str, name: str, arguments: str, *, is_named: bool
    ) -> _CallUnderWay:
        """Return the call that a piece belongs to: by its index, else its id, else its place in the chunk."""
        call = self._call_of_index.get(place)
        if index is None or (call is not None and not name and call.id != call_id):
            call = self._call_of_id.get(call_id, call)
        if call is None or call.is_another(call_id, name, arguments, self.offered) or (is_named and name):
            call = self._call_of_index[place] = _CallUnderWay()
            self._calls.append(call)
            budgets.CALLS.check(len(self._calls))
        return call

    def calls(self) -> list[ToolCall]:
        return [ToolCall(call.id, call.name, call.text) for call in self._calls]

    def usage(self) -> UsageReport:
        return usage_of(self.counts or None)

    def pieces(self) -> Iterable[Piece]:
        texts = {} if self._echo is Echo.NEVER else self._reasoning
        item: dict[str, Any] = {name: "".join(pieces) for name, pieces in texts.items()}
        extras = {str(at): call.extra for at, call in enumerate(self._calls) if call.extra}
        optional = (("reasoning_details", self._details), ("extra_content", self._extra), ("calls", extras))
        item |= {name: value for name, value in optional if value}
        opaque = [Opaque(item)] if item else []
        return [*opaque, Spoken(self.chars), *[Called() for _ in self._calls]]


def _plain_text(choice: dict[str, Any]) -> str:
    """Return the text of a choice if it holds nothing else, which is true of nearly all pieces of an answer."""
    delta = choice.get("delta")
    if not isinstance(delta, dict) or choice.get("finish_reason") or choice.get("logprobs"):
        return ""
    text, is_plain = delta.get("content"), delta.keys() <= TEXT_FIELDS and choice.keys() <= PIECE_FIELDS
    return text if is_plain and isinstance(text, str) else ""


def _is_complaint(document: dict[str, Any]) -> bool:
    base = document.get("base_resp")
    is_fine = isinstance(base, dict) and not base.get("status_code")  # MiniMax sends a status of 0 with each answer
    certain = {name: value for name, value in document.items() if name not in VAGUE}
    return not is_fine and bool(complaint_of_payload(certain).text)


def _visible_text(detail: dict[str, Any]) -> str:
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def usage_of(reported: Any) -> UsageReport:
    """Read the counts. In this format ``prompt_tokens`` includes cached tokens, and ``completion_tokens`` reasoning."""
    if reported is None:
        return UsageUnavailable()
    if not isinstance(reported, dict):
        return UsageUnavailable(f"usage is {reported!r}, not an object")
    cached = part(reported, "prompt_tokens_details", "cached_tokens")
    shares = Shares(
        cache_read=reported.get("prompt_cache_hit_tokens") if cached is None else cached,  # the first is DeepSeek's
        cache_write=part(reported, "prompt_tokens_details", "cache_write_tokens"),
        reasoning=part(reported, "completion_tokens_details", "reasoning_tokens"),
    )
    return usage_from(
        first_of(reported, "prompt_tokens", "input_tokens"),
        first_of(reported, "completion_tokens", "output_tokens"),
        reported.get("total_tokens"),
        shares,
    )
