"""Reader of the answers of Anthropic's Messages API."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog

from dominds import budgets
from dominds.llm.json_text import is_whole
from dominds.llm.messages import Request, ToolCall
from dominds.llm.providers.contents import arguments_in, text_inside, whole_number
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken
from dominds.llm.providers.reading import AnswerReader
from dominds.llm.stream import StreamEvent, ToolCallDelta
from dominds.llm.usage import Shares, UsageReport, UsageUnavailable, as_whole, part, usage_from

log = structlog.get_logger(__name__)

# The field that each kind of delta fills.
DELTAS = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}
INPUT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True)
class Block:
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

    @property
    def call(self) -> ToolCall:
        arguments = self.text("partial_json") or arguments_in(self.start.get("input") or None)
        return ToolCall(str(self.start.get("id") or ""), str(self.start.get("name") or ""), arguments)


class BlockAssembly:
    """The content blocks of one answer, in the order in which they began."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._newest_at: dict[int, Block] = {}  # the newest block of each index; a missing index counts as 0

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    @property
    def newest(self) -> Block | None:
        return self._blocks[-1] if self._blocks else None

    def begin(self, index: Any, start: dict[str, Any]) -> Block | None:
        """Return the block that starts, or None if the server repeats the start of an unfinished call."""
        known = self._newest_at.get(whole_number(index) or 0)
        if known and known.is_call and known.start == start and start.get("id"):
            if not is_whole(known.text("partial_json")):
                return None
        elif known and not known.start:  # its first pieces came before its start
            known.start = start
            return known
        return self._add(index, start)

    def of_delta(self, index: Any) -> Block:
        """Return a delta's block, which is the newest one if the delta has no index, or comes before any start."""
        place = whole_number(index)
        known = self.newest if place is None else self._newest_at.get(place)
        return known or self._add(index, {})

    def _add(self, index: Any, start: dict[str, Any]) -> Block:
        block = self._newest_at[whole_number(index) or 0] = Block(start)
        self._blocks.append(block)
        budgets.CALLS.check(len(self._blocks) // 4)  # blocks of text and thinking stand between calls
        return block


class MessagesReader(AnswerReader):
    """A reader of events up to ``message_stop``, or of a whole message."""

    def __init__(self, request: Request, owner: Owner, *, needs_signature: bool) -> None:
        super().__init__(request, owner, is_thinking=not needs_signature)
        self._needs_signature = needs_signature
        self._blocks = BlockAssembly()
        self._transformations: Any = None

    def read_document(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        match document.get("type"):
            case "content_block_delta":
                return self._read_delta(self._blocks.of_delta(document.get("index")), document.get("delta") or {})
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
        if block := self._blocks.newest:
            block.spoken += self.chars - before
        return events

    def _start_block(self, index: Any, start: dict[str, Any]) -> Iterable[StreamEvent]:
        has_thought = any(block.kind == "thinking" and block.text("thinking") for block in self._blocks)
        block = self._blocks.begin(index, start)
        if block is None:
            return ()
        match block.kind:
            case "text":
                return self._say(block, start.get("text"))
            case "tool_use":
                return (ToolCallDelta(str(start.get("name") or "") + arguments_in(start.get("input") or None)),)
            case "thinking":
                return self.think(("\n\n" if has_thought else "") + text_inside(start.get("thinking")))
        return self._say(block, start)  # gateways have other types for text

    def _say(self, block: Block, content: Any) -> list[StreamEvent]:
        before = self.chars
        events = self.read_content(content)
        block.spoken += self.chars - before
        return events

    def _read_delta(self, block: Block, delta: dict[str, Any]) -> Iterable[StreamEvent]:
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
        return [block.call for block in self._blocks if block.is_call]

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
