"""The contract of all readers of answers, whatever their wire format.

- An answer ends with a word of the provider that is known here, with the format's last event, or, after some answer,
  with ``[DONE]`` or the counts that a server sends last. A word for a failure raises, and an answer with an unknown
  word is never taken for a whole one.
- An error raises wherever it stands: in the event, in its choice, or in the response.
- Keep-alives are skipped, in whichever field they come. Anything else that is not JSON is damage, and raises.
- A call that a model wrote as text, and that its server did not recognise, is no answer.
- Text may come as a string or in parts, in pieces or as a whole message. Thinking inside it is separated from it.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import structlog

from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import NotJson, is_whole, objects_in
from dominds.llm.messages import Message, Request, ToolCall
from dominds.llm.providers.contents import spoken_in
from dominds.llm.providers.echoes import Owner, Piece, serialise
from dominds.llm.providers.ends import PLAIN_ENDS, UNCUT, is_failure, more_telling, reason_of
from dominds.llm.providers.events import DONE, CharacterJoiner, Complained, document_of
from dominds.llm.providers.outgoing import restore_calls, wire_name
from dominds.llm.providers.think_tags import ThinkTags
from dominds.llm.providers.written_calls import call_written_in
from dominds.llm.stream import CUT_SHORT, Finished, FinishReason, ReasoningDelta, Rethought, StreamEvent, TextDelta
from dominds.llm.usage import Usage, UsageReport

log = structlog.get_logger(__name__)

# The beginning of an answer, some three lines, is held back if its model may think in the text: thinking without an
# opening tag is recognised only by its closing tag.
HELD_CHARS = 200
ALL_CHARS = 60_000  # the same for a model that was seen to think without an opening tag
# Fields of a whole answer that programs read. The last two are Perplexity's.
FIELDS = ("system_fingerprint", "service_tier", "citations", "search_results")


class Reader(Protocol):
    """A reader of one wire format's events. ``is_done`` is set by an explicit end, after which no event is needed."""

    is_done: bool

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]: ...

    def close(self) -> Iterable[StreamEvent]:
        """Yield the events that were held back until the end."""

    def outcome(self) -> Finished | None:
        """Return the outcome, or None if the provider never said that it had finished."""


# Owners whose answers were seen, in this process, to begin with thinking without an opening tag.
_untagged: set[str] = set()


def forget() -> None:
    """Forget which models think without an opening tag."""
    _untagged.clear()


class AnswerReader(ABC):
    """The common part of the readers of all formats.

    A subclass reads the documents of its format, and returns the calls, counts and pieces that have come so far.
    ``is_thinking`` says that the model may think without an opening tag.
    """

    def __init__(self, request: Request, owner: Owner, *, is_thinking: bool) -> None:
        self.request = request
        self.owner = owner
        held = ALL_CHARS if owner.name in _untagged else HELD_CHARS if is_thinking else 0
        self._tags = ThinkTags(held)
        self.offered = frozenset([wire_name(tool.name) for tool in request.tools])
        self.chars = 0  # characters of the answer's text that were released
        self._texts: list[str] = []  # pieces of that text, kept only if tools are offered: a call may stand in it
        self._thoughts: list[str] = []  # pieces of the thinking, kept for the same reason
        self.has_refused = False
        self.has_thought = False  # whether thinking came in a field of its own
        self.end = ""  # the provider's word for the end
        self.counts: dict[str, Any] = {}  # token counts as they were reported
        self.fields: dict[str, Any] = {}  # further fields of the answer that programs are told
        self._joiner = CharacterJoiner()
        self.has_ended = False  # set by the format's own last event
        self.is_done = False
        self.is_marked = False  # whether the newest event is one that comes only after an answer

    # -- what each format defines

    @abstractmethod
    def read_document(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        """Read one document of the stream, and yield its events at once."""

    @abstractmethod
    def calls(self) -> list[ToolCall]:
        """Return the tool calls that have come so far."""

    @abstractmethod
    def usage(self) -> UsageReport:
        """Return the counts that were reported so far."""

    @abstractmethod
    def pieces(self) -> Iterable[Piece]:
        """Yield the pieces of the answer that go back to the provider unchanged."""

    # -- what all formats share

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]:
        event = self._joiner.join(event)
        if event.data.strip() == DONE:
            self.is_marked = self.is_done = True
            return ()
        try:
            document = document_of(event)
        except NotJson:
            if b"\n" not in event.data:
                raise
            # Lines of JSON, or events without the blank line between them.
            lines = event.data.split(b"\n")
            return [piece for line in lines for piece in self.read(ServerEvent(line))]
        return self.read_document(document) if document else ()

    def close(self) -> list[StreamEvent]:
        lost = self.say("\ufffd") if self._joiner.half and not self.has_thought else []
        return [*lost, *self._count(self._tags.close())]

    def note_end(self, word: Any) -> None:
        """Note the provider's word for the end, if there is one."""
        if word:
            self.end = more_telling(self.end, word)

    def note_counts(self, reported: Any) -> None:
        """Note the latest count of each kind. A later 0 or null is ignored, since some gateways end with either."""
        for name, value in reported.items() if isinstance(reported, dict) else ():
            if value is not None and (value or name not in self.counts):
                self.counts[name] = value

    def note_fields(self, document: dict[str, Any]) -> None:
        """Note the fields of a whole answer that are the same in all formats."""
        self.fields |= {name: value for name in FIELDS if (value := document.get(name))}

    def read_content(self, content: Any) -> list[StreamEvent]:
        """Take text, as a string or in parts, and separate the thinking in it."""
        pieces = spoken_in(content)
        return [event for text, is_thought in pieces for event in (self.think(text) if is_thought else self.say(text))]

    def say(self, text: str) -> list[StreamEvent]:
        """Take a piece of the answer's text, and separate the thinking in it."""
        return self._count(self._tags.feed(text)) if text else []

    def refuse(self, text: str) -> list[StreamEvent]:
        """Take a piece of a refusal, which its provider tells apart from other text."""
        if not text:
            return []
        self.has_refused = True
        return [*self._count(self._tags.close()), *self._count(iter([TextDelta(text, is_refusal=True)]))]

    def take_back(self) -> list[StreamEvent]:
        """Take back the answer's text so far, including the part that is held, so that another one can be said."""
        self._tags = ThinkTags()
        return self._count(iter([Rethought()])) if self.chars else []

    def think(self, text: str) -> list[StreamEvent]:
        """Take a piece of thinking from a field of its own."""
        if not text:
            return []
        self.has_thought = True
        self._tags.hold_nothing()
        return self._count(iter([ReasoningDelta(text)]))

    def _count(self, events: Iterator[TextDelta | ReasoningDelta | Rethought]) -> list[StreamEvent]:
        results: list[StreamEvent] = []
        for event in events:
            match event:
                case TextDelta(text):
                    self.chars += len(text)
                    if self.offered:
                        self._texts.append(text)
                case ReasoningDelta(text) if self.offered:
                    self._thoughts.append(text)
                case Rethought():
                    self.chars = 0
                    self._thoughts += self._texts
                    self._texts.clear()
            results.append(event)
        if self._tags.was_untagged:
            _untagged.add(self.owner.name)
        return results

    def outcome(self) -> Finished | None:
        calls = [one for call in self.calls() for one in _one_each(call)]
        has_answer = bool(calls or self.chars)
        if not (self.has_ended or self.end or (self.is_marked and has_answer)):
            return None
        reason = self._reason(calls, has_answer=has_answer)
        if not calls and reason in UNCUT:
            self._refuse_written_call()
        if reason not in CUT_SHORT:
            calls = [ToolCall(call.id, call.name, _or_none(call.arguments)) for call in calls]
        return Finished(
            usage=self.usage(),
            tool_calls=with_own_ids(restore_calls(calls, self.request.tools), self.request.messages),
            finish_reason=reason,
            provider_items=serialise(self.owner, self.pieces()),
            end=self.end,
            fields=self.fields,
        )

    def _is_used_up(self) -> bool:
        """Check whether the answer is as long as the request allowed, by the provider's count."""
        most, usage = self.request.max_output_tokens, self.usage()
        return most is not None and isinstance(usage, Usage) and usage.completion_tokens >= most

    def _refuse_written_call(self) -> None:
        """Raise ``Complained`` if the answer, or thinking without an answer, ends with a call in the form of text."""
        if name := call_written_in("".join(self._texts if self.chars else self._thoughts), self.offered):
            words = (
                f"the call of {name} came as text, which its server did not read as a call. Where this goes on, set up "
                "the server's parser of calls for this model, or choose another model"
            )
            raise Complained({"error": {"message": words, "code": "tool_use_failed"}})

    def _reason(self, calls: list[ToolCall], *, has_answer: bool) -> FinishReason:
        """Return the reason for the end. Raises ``Complained`` for a word that means failure."""
        if is_failure(self.end):
            raise Complained({"error": {"message": f"it ended its answer with {self.end!r}", "code": "server_error"}})
        reason = reason_of(self.end) if self.end else FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        if reason is FinishReason.TOOL_CALLS and not calls:  # the calls were lost
            reason = FinishReason.OTHER
        if reason in PLAIN_ENDS and calls and self._is_used_up() and not is_whole(_or_none(calls[-1].arguments)):
            reason = FinishReason.LENGTH  # vLLM 0.27 names no other end than tool_calls after any call
        if reason is FinishReason.OTHER:
            log.warning("unknown_end", owner=self.owner.name, end=self.end[:80])
        if reason is FinishReason.LENGTH and not has_answer:
            return FinishReason.THOUGHT_ONLY
        return reason


def _or_none(arguments: str) -> str:
    """Return the arguments, or an empty object for a call without any. vLLM passes on a null of the model as a text."""
    return "{}" if arguments.strip() in ("", "null") else arguments


def _one_each(call: ToolCall) -> Iterator[ToolCall]:
    """Yield the call, or several calls if its arguments are several objects."""
    objects = [] if is_whole(call.arguments) else objects_in(call.arguments)
    first, *others = objects or [call.arguments]
    yield call if first == call.arguments else ToolCall(call.id, call.name, first)
    for arguments in others:
        yield ToolCall("", call.name, arguments)


def with_own_ids(calls: Iterable[ToolCall], messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """Replace call ids that are empty or were used before, since some servers count from 0 each time."""
    calls = tuple(calls)
    used = {call.id for message in messages for call in message.tool_calls} if calls else set()
    results = []
    for call in calls:
        is_usable = call.id and call.id not in used
        results.append(call if is_usable else ToolCall(f"call_{uuid.uuid4().hex[:24]}", call.name, call.arguments))
        used.add(results[-1].id)
    return tuple(results)
