"""Reader of the answers of chat completions."""

from collections.abc import Iterable
from typing import Any

from dominds import budgets
from dominds.llm.complaints import VAGUE, complaint_of_payload
from dominds.llm.messages import Request, ToolCall
from dominds.llm.models.model import Echo
from dominds.llm.providers.chat_calls import CallAssembly
from dominds.llm.providers.chat_reasoning import Reasoning
from dominds.llm.providers.contents import objects_of, spoken_in, text_inside
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken
from dominds.llm.providers.ends import is_telling
from dominds.llm.providers.events import Complained, refuse_errors
from dominds.llm.providers.reading import AnswerReader
from dominds.llm.stream import StreamEvent, ToolCallDelta
from dominds.llm.usage import Shares, Usage, UsageReport, UsageUnavailable, first_of, part, usage_from

PIECE_FIELDS = frozenset({"index", "delta", "finish_reason", "logprobs"})  # the fields of a choice that is only text
NOTHING: tuple[object, ...] = (None, "", [], {})  # values of a delta's fields that say nothing
TEXT_FIELDS = frozenset({"role", "content"})  # the fields of such a choice's delta


class ChatReader(AnswerReader):
    """A reader of chunks up to ``[DONE]``."""

    def __init__(self, request: Request, owner: Owner, echo: Echo) -> None:
        super().__init__(request, owner, is_thinking=echo is not Echo.NEVER)
        self._echo = echo
        self._reasoning = Reasoning()
        self._calls = CallAssembly(self.offered)
        self._extra: Any = None  # what Google wants back with the answer
        self._has_deltas = False
        self._whole = ""  # the text so far of an answer that comes as whole messages

    def read_document(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        groq = document.get("x_groq")
        if usage := document.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None):
            self.note_counts(usage)
        choices = document.get("choices")
        # Gateways that send neither an end nor [DONE] still send the counts last, as OpenAI does.
        self.is_marked = choices == [] and isinstance(self.usage(), Usage)
        if choices:  # mostly one, but Copilot sends the text in a first choice and the calls in a second
            events = [event for choice in objects_of(choices) for event in self._read_choice(choice)]
            if self.end:
                self.note_fields(document)
            return events
        if not document.get("usage") and _is_complaint(document):
            raise Complained(document)  # an error without a field ``error``, as some gateways send it
        return ()

    def _read_choice(self, choice: dict[str, Any]) -> list[StreamEvent]:
        if text := _plain_text(choice):
            self._has_deltas = True
            return self.say(text)
        refuse_errors(choice, choice.get("delta"), choice.get("message"))  # OpenRouter has errors in the choice
        self.note_end(choice.get("finish_reason"))
        if is_telling(native := choice.get("native_finish_reason")):  # OpenRouter
            self.note_end(native)
        self._note_logprobs(choice.get("logprobs"))
        delta = self._delta_of(choice)
        for holder in (choice, delta):  # Moonshot has the usage in the choice
            self.note_counts(holder.get("usage"))
        self._extra = delta.get("extra_content") or self._extra
        if annotations := objects_of(delta.get("annotations")):
            self.fields["annotations"] = [*self.fields.get("annotations", ()), *annotations]
        calls = objects_of(delta.get("tool_calls") or choice.get("tool_calls"))
        if legacy := delta.get("function_call"):
            calls.append({"function": legacy})
        events = self.think(self._reasoning.add(delta))
        for text, is_thought in spoken_in(delta.get("content")):
            if is_thought and text:
                self._reasoning.add_text(text)
            events += self.think(text) if is_thought else self.say(text)
        events += self.refuse(text_inside(delta.get("refusal")))
        if calls:
            events += [ToolCallDelta(text) for text in self._calls.add(calls) if text]
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
        if any(value not in NOTHING for name, value in delta.items() if name != "role"):
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

    def calls(self) -> list[ToolCall]:
        return self._calls.calls()

    def usage(self) -> UsageReport:
        return usage_of(self.counts or None)

    def pieces(self) -> Iterable[Piece]:
        item: dict[str, Any] = {} if self._echo is Echo.NEVER else {**self._reasoning.fields()}
        extras = {str(at): call.extra for at, call in enumerate(self._calls) if call.extra}
        optional = (
            ("reasoning_details", self._reasoning.details()),
            ("extra_content", self._extra),
            ("calls", extras),
        )
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
