"""Anthropic's Messages API, for Anthropic and for compatible servers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog

from dominds import budgets
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import anthropic_exchange
from dominds.llm.json_text import dump, is_whole
from dominds.llm.messages import ANY_TOOL, NO_TOOL, Request, ToolCall, ToolSpec
from dominds.llm.models.dialects import ANTHROPIC_MESSAGES, MESSAGES, ONE_CALL, SAMPLING
from dominds.llm.models.model import (
    MODALITIES,
    Echo,
    Forcing,
    Form,
    ImageBounds,
    ModelInfo,
    PartSizes,
    ProviderKind,
    Thinking,
)
from dominds.llm.models.params import in_body, turn_thinking_off
from dominds.llm.providers.anthropic_history import CACHE_HERE, THINKING, messages_of
from dominds.llm.providers.contents import arguments_in, text_inside, whole_number
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken
from dominds.llm.providers.listed_window import anthropic_window
from dominds.llm.providers.outgoing import fit, form_of
from dominds.llm.providers.parts import ends_with_files, refuse_unseen
from dominds.llm.providers.reading import AnswerReader
from dominds.llm.providers.wire import WireStream
from dominds.llm.stream import StreamEvent, ToolCallDelta
from dominds.llm.usage import Shares, UsageReport, UsageUnavailable, as_whole, part, usage_from

log = structlog.get_logger(__name__)

DEFAULT_MAX_TOKENS = 4096  # the API requires a number
LEAST_BUDGET_TOKENS = 1024  # a smaller budget of thinking is refused
# Asks the server to drop thinking whose conversation was changed. Otherwise it would refuse every later request.
DROP_STALE = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
DROP_STALE_BETA = "thinking-binding-controls-2026-08-01"
# The field that each kind of delta fills.
DELTAS = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}
INPUT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """A provider that speaks the Messages API at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = dump(request_body(request, owner, self.model))
        is_anthropic = self.model.kind == ANTHROPIC
        betas = (DROP_STALE_BETA,) if _drops_stale(request, self.model) else ()
        exchange = anthropic_exchange(
            self.endpoint,
            "/v1/messages",
            body,
            is_anthropic=is_anthropic,
            betas=betas,
            has_files=ends_with_files(request),
        )
        return WireStream(exchange, MessagesReader(request, owner, needs_signature=is_anthropic), self.endpoint)


def connect(model: ModelInfo, key: str) -> AnthropicMessages:
    return AnthropicMessages(Endpoint(model.base_url, key), model)


ANTHROPIC = ProviderKind(
    "anthropic",
    connect,
    label="Anthropic (Messages)",
    echo=Echo.SENT,
    params=ANTHROPIC_MESSAGES,
    form=Form(plain_keys=True),
    takes_blank=False,
    modalities=MODALITIES,
    # The bound since Opus 4.7. Images of earlier models take a third of it at most.
    part_sizes=PartSizes(patch=28, most_patches=4784, page=3000),
    # From platform.claude.com, "Vision". Windows above 200,000 tokens allow 600 images. A request may have 32 MB, with
    # the images in base64.
    image_bounds=ImageBounds(most=100, most_bytes=20_000_000, large=2_000, most_with_large=20),
    loaded_window=anthropic_window,
)
ANTHROPIC_COMPATIBLE = ProviderKind(
    "anthropic-compatible",
    connect,
    echo=Echo.SENT,
    params=MESSAGES,
    form=Form(plain_keys=True),
    takes_blank=False,
    loaded_window=anthropic_window,
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> dict[str, Any]:
    request = fit(request, form_of(model))
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or model.output_length or DEFAULT_MAX_TOKENS,
        "messages": messages_of(request, owner, model.echo),
        "stream": True,
        **in_body(model.model_params),
    }
    if model.kind == ANTHROPIC:
        for name in SAMPLING:  # the API version that we name refuses them with any value
            body.pop(name, None)
    if request.instructions:
        body["system"] = [{"type": "text", "text": request.instructions, **CACHE_HERE}]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force == NO_TOOL:
            body["tool_choice"] = {"type": "none"}
        elif request.force and model.forcing is not Forcing.NONE:
            body["tool_choice"] = _choice(request.force, model.forcing)
            turn_thinking_off(body, model.thinking_off)
    if thinking := _thinking(request, model, body):
        body["thinking"] = thinking
    else:
        body.pop("thinking", None)
    if body.pop(ONE_CALL, False) and request.tools and request.force != NO_TOOL:
        body["tool_choice"] = {"type": "auto", **body.get("tool_choice", {}), ONE_CALL: True}
    return body


def _choice(name: str, forcing: Forcing) -> dict[str, Any]:
    return {"type": "any"} if name == ANY_TOOL or forcing is Forcing.REQUIRED else {"type": "tool", "name": name}


def _thinking(request: Request, model: ModelInfo, body: dict[str, Any]) -> dict[str, Any]:
    """Return the field ``thinking``: as stated, and with a request for visible text if the model thinks anyway.

    A budget is left out if a tool is forced, or if the answer that results belong to lacks its thinking, since the API
    refuses both. A budget leaves a quarter of the output to the answer.
    """
    stated: dict[str, Any] = dict(body.get("thinking") or {})
    if stated.get("type") == "enabled":
        room = body["max_tokens"] * 3 // 4
        is_forced = body.get("tool_choice") not in (None, {"type": "none"})
        if is_forced or room < LEAST_BUDGET_TOKENS or _lacks_thinking(body["messages"]):
            return {}
        stated["budget_tokens"] = min(stated.get("budget_tokens", room), room)
    if model.kind == ANTHROPIC and model.thinking in (Thinking.ALWAYS, Thinking.ON):
        stated = {"type": "adaptive", **stated}
    if stated.get("type") in ("adaptive", "between_tools"):
        stated = {"display": "summarized", **stated}
    if _drops_stale(request, model):
        stated = {**stated, **DROP_STALE}
    return stated


def _drops_stale(request: Request, model: ModelInfo) -> bool:
    return model.is_bound and request.epoch > 0 and model.kind == ANTHROPIC


def _lacks_thinking(messages: list[dict[str, Any]]) -> bool:
    """Check whether the answer before the newest tool results has no thinking."""
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in THINKING


def _tool(tool: ToolSpec) -> dict[str, Any]:
    fields = {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
    return {**fields, "strict": True} if tool.strict else fields


@dataclass(slots=True)
class _Block:
    """An unfinished content block: its start, its pieces by field, and how many characters of text it has given."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)
    spoken: int = 0

    @property
    def kind(self) -> str:
        return str(self.start.get("type") or "")

    @property
    def is_call(self) -> bool:
        """Check for a call. A call whose start was lost counts too, so that it is reported as broken."""
        return self.kind == "tool_use" or (not self.start and "partial_json" in self.pieces)

    def add(self, name: str, piece: Any) -> None:
        if isinstance(piece, str):
            self.pieces.setdefault(name, []).append(piece)

    def text(self, name: str) -> str:
        first = self.start.get(name)
        return (first if isinstance(first, str) else "") + "".join(self.pieces.get(name, ()))


class MessagesReader(AnswerReader):
    """A reader of events up to ``message_stop``, or of a whole message."""

    def __init__(self, request: Request, owner: Owner, *, needs_signature: bool) -> None:
        super().__init__(request, owner, is_thinking=not needs_signature)
        self._needs_signature = needs_signature
        self._blocks: list[_Block] = []
        self._block_at: dict[int, _Block] = {}  # the newest block of each index
        self._transformations: Any = None

    def read_document(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        match document.get("type"):
            case "content_block_delta":
                return self._read_delta(self._block_of(document.get("index")), document.get("delta") or {})
            case "content_block_start":
                return self._start_block(document.get("index"), document.get("content_block") or {})
            case "message_start":
                return self._read_message(document.get("message") or {})
            case "message_delta" | "message_stop" as kind:
                for holder in (document, document.get("delta") or {}):
                    self.note_end(holder.get("stop_reason"))
                self.note_counts(document.get("usage"))
                self._transformations = document.get("input_transformations") or self._transformations
                return self._stop() if kind == "message_stop" else ()
            case "message":
                return [*self._read_message(document), *self._stop()]
        return ()

    def _read_message(self, message: dict[str, Any]) -> list[StreamEvent]:
        """Read the head of a stream, which has no content yet, or a whole message."""
        self.note_counts(message.get("usage"))
        self._transformations = message.get("input_transformations")
        self.note_end(message.get("stop_reason"))
        content = message.get("content") or ()
        blocks = [content] if isinstance(content, str) else filter(None, content)
        return [
            event
            for block in blocks
            for event in self._start_block(None, {"type": "text", "text": block} if isinstance(block, str) else block)
        ]

    def _stop(self) -> list[StreamEvent]:
        self.has_ended = self.is_done = True
        _log_transformations(self.request.model, self._transformations)
        return []

    def close(self) -> list[StreamEvent]:
        before = self.chars
        events = super().close()
        if self._blocks:
            self._blocks[-1].spoken += self.chars - before
        return events

    def _block_of(self, index: Any) -> _Block:
        """Return a delta's block, which is the newest one if the delta has no index, or comes before any start."""
        place = whole_number(index)
        block = self._block_at.get(place) if place is not None else next(reversed(self._blocks), None)
        return block or self._new_block(index, {})

    def _new_block(self, index: Any, start: dict[str, Any]) -> _Block:
        block = _Block(start)
        self._blocks.append(block)
        self._block_at[whole_number(index) or 0] = block
        budgets.CALLS.check(len(self._blocks) // 4)  # blocks of text and thinking stand between calls
        return block

    def _start_block(self, index: Any, start: dict[str, Any]) -> Iterable[StreamEvent]:
        kind, call_id = start.get("type"), start.get("id")
        known = self._block_at.get(whole_number(index) or 0)
        if (
            kind == "tool_use"
            and call_id
            and known
            and known.start == start
            and not is_whole(known.text("partial_json"))
        ):
            return ()  # the server repeats the start of an unfinished call
        is_another_thought = kind == "thinking" and any(
            block.kind == "thinking" and block.text("thinking") for block in self._blocks
        )
        if known and not known.start:
            known.start = start  # the block's first pieces came before its start
            block = known
        else:
            block = self._new_block(index, start)
        match kind:
            case "text":
                return self._say(block, start.get("text"))
            case "tool_use":
                return (ToolCallDelta(str(start.get("name") or "") + arguments_in(start.get("input") or None)),)
            case "thinking" if is_another_thought or start.get("thinking"):
                return self.think(("\n\n" if is_another_thought else "") + text_inside(start.get("thinking")))
            case "thinking":
                return ()
        return self._say(block, start)  # gateways have other types for text

    def _say(self, block: _Block, content: Any) -> list[StreamEvent]:
        before = self.chars
        events = self.read_content(content)
        block.spoken += self.chars - before
        return events

    def _read_delta(self, block: _Block, delta: dict[str, Any]) -> Iterable[StreamEvent]:
        match delta.get("type") or next((kind for kind, name in DELTAS.items() if name in delta), None):
            case "text_delta":
                return self._say(block, delta["text"])
            case "input_json_delta":
                piece = arguments_in(delta["partial_json"])
                block.add("partial_json", piece)
                return (ToolCallDelta(piece),) if piece else ()
            case "thinking_delta":
                thought = text_inside(delta.get("thinking"))
                block.add("thinking", thought)
                return self.think(thought)
            case "signature_delta":
                block.add("signature", delta.get("signature"))
        return ()

    def calls(self) -> list[ToolCall]:
        return [_call_of(block) for block in self._blocks if block.is_call]

    def usage(self) -> UsageReport:
        return usage_of(self.counts)

    def pieces(self) -> Iterator[Piece]:
        """Yield thinking blocks unchanged, with the places of text and calls between them.

        Anthropic refuses a block without a signature. Other servers sign nothing.
        """
        for block in self._blocks:
            match block.kind:
                case "redacted_thinking":
                    yield Opaque(block.start)
                case "thinking":
                    signature = block.text("signature")
                    if signature or not self._needs_signature:
                        signed = {"signature": signature} if signature else {}
                        yield Opaque({**block.start, "thinking": block.text("thinking"), **signed})
                case _ if block.is_call:
                    yield Called()
                case _ if block.spoken:
                    yield Spoken(block.spoken)


def _log_transformations(model: str, transformations: Any) -> None:
    """Log how the server changed the request, mostly by dropping thinking: how often, why, and the first place."""
    entries = (
        [entry for entry in transformations if isinstance(entry, dict)] if isinstance(transformations, list) else []
    )
    if entries:
        kinds = Counter(f"{entry.get('type')}: {entry.get('reason')}"[:80] for entry in entries)
        first = str(entries[0].get("path"))[:80]
        log.info("input_transformed", model=model, blocks=len(entries), kinds=dict(kinds.most_common(5)), first=first)


def _call_of(block: _Block) -> ToolCall:
    arguments = block.text("partial_json") or arguments_in(block.start.get("input") or None)
    return ToolCall(str(block.start.get("id") or ""), str(block.start.get("name") or ""), arguments)


def usage_of(counts: dict[str, Any]) -> UsageReport:
    """Read the counts. ``input_tokens`` excludes cache reads and writes here: the prompt is the sum of all three."""
    if counts.get("input_tokens") is None:
        return (
            usage_from(counts["prompt_tokens"], counts.get("completion_tokens"))
            if counts.get("prompt_tokens")
            else UsageUnavailable()
        )
    parts = [as_whole(counts[name]) for name in INPUT_COUNTS if name in counts]
    odd = next((each for each in parts if isinstance(each, bool) or not isinstance(each, int) or each < 0), None)
    long = part(counts, "cache_creation", "ephemeral_1h_input_tokens")
    short = part(counts, "cache_creation", "ephemeral_5m_input_tokens")
    shares = Shares(
        cache_read=counts.get("cache_read_input_tokens"),
        cache_write=counts.get("cache_creation_input_tokens") if short is None else short,
        cache_write_long=long,
        reasoning=part(counts, "output_tokens_details", "thinking_tokens"),
    )
    prompt = sum(count for count in parts if isinstance(count, int)) if odd is None else odd
    return usage_from(prompt, counts.get("output_tokens"), shares=shares)
