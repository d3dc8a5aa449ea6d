"""Anthropic's Messages API, as Anthropic and the compatible servers speak it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import arguments_object, dumped
from dominds.llm.messages import Message, Request, Role, ToolCall, ToolSpec
from dominds.llm.providers.opaque_items import given_back, kept
from dominds.llm.providers.sdk_headers import anthropic_exchange
from dominds.llm.providers.wire import Complained, WireStream, json_of, offered_tools, text_in, with_own_ids
from dominds.llm.stream import Finished, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable, usage_from

DEFAULT_MAX_TOKENS = 4096  # the API insists on a number
CACHE_HERE = {"cache_control": {"type": "ephemeral"}}
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
THINKING = ("thinking", "redacted_thinking")
INPUT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """A provider that speaks the Messages API. ``output_length`` is the model's, in tokens, when known."""

    endpoint: Endpoint
    provider_id: str = "anthropic"
    output_length: int | None = None
    supports_tool_choice: bool = True
    is_anthropic: bool = True

    def stream(self, request: Request) -> WireStream:
        owner = f"{self.provider_id}/{request.model}"
        body = request_body(
            request, owner, output_length=self.output_length, supports_tool_choice=self.supports_tool_choice
        )
        exchange = anthropic_exchange(self.endpoint, "/v1/messages", dumped(body), is_anthropic=self.is_anthropic)
        reader = MessagesReader(request, owner, needs_signature=self.is_anthropic)
        return WireStream(exchange, reader, self.endpoint)


def request_body(
    request: Request, owner: str, *, output_length: int | None, supports_tool_choice: bool
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or output_length or DEFAULT_MAX_TOKENS,
        "messages": messages_of(request, owner),
        "stream": True,
    }
    if request.instructions:
        body["system"] = [{"type": "text", "text": request.instructions, **CACHE_HERE}]
    if tools := offered_tools(request):
        body["tools"] = [_tool(tool) for tool in tools]
        if request.required_tool and supports_tool_choice:
            body["tool_choice"] = {"type": "tool", "name": request.required_tool}
    return body


def messages_of(request: Request, owner: str) -> list[dict[str, Any]]:
    """Roles must alternate here, so neighbours of one side are merged. Empty blocks are refused, so they go."""
    stable = _last_stable(request.messages)
    merged: list[dict[str, Any]] = []
    for position, message in enumerate(request.messages):
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = _blocks(message, owner)
        if position == stable and blocks:
            blocks[-1] = {**blocks[-1], **CACHE_HERE}
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"].extend(blocks)
        elif blocks:
            merged.append({"role": role, "content": blocks})
    return merged


def _last_stable(messages: tuple[Message, ...]) -> int:
    """The last message that the next request will repeat: what is appended for one request only stands behind it.

    That is the last tool result since the last answer, else the first user message since then.
    """
    start = next((at + 1 for at in reversed(range(len(messages))) if messages[at].role is Role.ASSISTANT), 0)
    results = [at for at in range(start, len(messages)) if messages[at].role is Role.TOOL]
    return results[-1] if results else start


def _blocks(message: Message, owner: str) -> list[dict[str, Any]]:
    match message.role:
        case Role.USER:
            return _text_blocks(message.text)
        case Role.TOOL:
            return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text or "(empty)"}]
        case Role.ASSISTANT:
            spoken = [*_text_blocks(message.text), *map(_tool_use, message.tool_calls)]
            thoughts = [item for item in given_back(owner, message.provider_items) if item.get("type") in THINKING]
            return [*thoughts, *spoken] if spoken else []


def _text_blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call.arguments)}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


@dataclass(slots=True)
class _Block:
    """A content block under way: its first form, and the pieces of each field that came since."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, piece: Any) -> None:
        if isinstance(piece, str):
            self.pieces.setdefault(name, []).append(piece)

    def text(self, name: str) -> str:
        first = self.start.get(name)
        return (first if isinstance(first, str) else "") + "".join(self.pieces.get(name, ()))


class MessagesReader:
    """Folds events up to ``message_stop``."""

    def __init__(self, request: Request, owner: str, *, needs_signature: bool) -> None:
        self._messages = request.messages
        self._owner = owner
        self._needs_signature = needs_signature
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, Any] = {}
        self._stop_reason = ""
        self.is_done = False

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]:
        found = json_of(event)
        match found.get("type"):
            case "content_block_delta":
                return self._read_delta(self._blocks.setdefault(found["index"], _Block({})), found["delta"])
            case "content_block_start":
                return self._start_block(found["index"], found["content_block"])
            case "message_start":
                self._note_usage(found["message"].get("usage"))
            case "message_delta":
                self._stop_reason = str((found.get("delta") or {}).get("stop_reason") or self._stop_reason)
                self._note_usage(found.get("usage"))
            case "message_stop":
                self.is_done = True
            case "error":
                raise Complained(found)
        return ()

    def _start_block(self, index: int, start: dict[str, Any]) -> Iterable[StreamEvent]:
        self._blocks[index] = _Block(start)
        if start.get("type") == "text" and start.get("text"):
            return (TextDelta(text_in(start["text"])),)
        return (ToolCallDelta(str(start.get("name") or "")),) if start.get("type") == "tool_use" else ()

    def _read_delta(self, block: _Block, delta: dict[str, Any]) -> Iterable[StreamEvent]:
        match delta.get("type"):
            case "text_delta":
                return (TextDelta(text_in(delta["text"])),) if delta["text"] else ()
            case "input_json_delta":
                block.add("partial_json", delta["partial_json"])
                return (ToolCallDelta(text_in(delta["partial_json"])),) if delta["partial_json"] else ()
            case "thinking_delta":
                block.add("thinking", delta.get("thinking"))
            case "signature_delta":
                block.add("signature", delta.get("signature"))
        return ()

    def _note_usage(self, reported: Any) -> None:
        """Keep the last count that is not null. A later 0 does not replace one: compatible servers fill in zeros."""
        for name, value in (reported or {}).items():
            if value is not None and (value != 0 or name not in self._counts):
                self._counts[name] = value

    def finished(self) -> Finished | None:
        if not self.is_done:
            return None
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        calls = [_call_of(block) for block in blocks if block.start.get("type") == "tool_use"]
        reason = self._stop_reason or ("tool_use" if calls else "end_turn")
        return Finished(
            usage=usage_of(self._counts),
            tool_calls=with_own_ids(calls, self._messages),
            finish_reason=FINISH_REASONS.get(reason, reason),
            provider_items=kept(self._owner, self._thoughts(blocks)),
        )

    def _thoughts(self, blocks: list[_Block]) -> Iterable[dict[str, Any]]:
        """Thinking blocks as they came. Anthropic refuses one without its signature; others sign nothing."""
        for block in blocks:
            if block.start.get("type") == "redacted_thinking":
                yield block.start
            elif block.start.get("type") == "thinking":
                signature = block.text("signature")
                if signature or not self._needs_signature:
                    yield {**block.start, "thinking": block.text("thinking"), "signature": signature}


def _call_of(block: _Block) -> ToolCall:
    streamed = block.text("partial_json")
    arguments = streamed or dumped(block.start.get("input") or {}).decode()
    return ToolCall(str(block.start.get("id") or ""), str(block.start.get("name") or ""), arguments)


def usage_of(counts: dict[str, Any]) -> UsageReport:
    """Input here excludes what was read from and written to the cache: the whole prompt is the sum of all three."""
    if counts.get("input_tokens") is None:
        return UsageUnavailable()
    parts = [counts[name] for name in INPUT_COUNTS if name in counts]
    odd = next((part for part in parts if isinstance(part, bool) or not isinstance(part, int) or part < 0), None)
    return usage_from(sum(parts) if odd is None else odd, counts.get("output_tokens"))
