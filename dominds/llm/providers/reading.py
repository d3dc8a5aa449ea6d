"""The contract of all readers of answers, whatever their wire format.

- An answer ends with a word of the provider that is known here, with the format's last event, or with ``[DONE]`` after
  some answer. A word for a failure raises, and an answer with an unknown word is never taken for a whole one.
- An error raises wherever it stands: in the event, in its choice, or in the response.
- Keep-alives are skipped, in whichever field they come. Anything else that is not JSON is damage, and raises.
- A call that a model wrote as text, and that its server did not recognise, is no answer.
- Text may come as a string or in parts, in pieces or as a whole message. Thinking inside it is separated from it.
"""

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import structlog

from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import NotJson, dump, is_whole, objects_in, parse
from dominds.llm.messages import Message, Request, ToolCall
from dominds.llm.providers.echoes import Owner, Piece, serialise
from dominds.llm.providers.outgoing import restore_calls, wire_name
from dominds.llm.providers.think_tags import ThinkTags
from dominds.llm.providers.written_calls import call_written_in
from dominds.llm.stream import CUT_SHORT, Finished, FinishReason, ReasoningDelta, Rethought, StreamEvent, TextDelta
from dominds.llm.usage import UsageReport

log = structlog.get_logger(__name__)

DONE = b"[DONE]"
KEEP_ALIVE = re.compile(rb':.*|["[]?(ping|pong|keep[-_ ]?alive|heart[-_ ]?beat|([\w.-]+ )?processing)?["\]]?', re.I)
KEEP_ALIVE_NAMES = ("ping", "keepalive", "heartbeat")
KEEP_ALIVE_CHARS = 18  # the longest form of such a name, with characters between its letters
# The beginning of an answer, some three lines, is held back if its model may think in the text: thinking without an
# opening tag is recognised only by its closing tag.
HELD_CHARS = 200
ALL_CHARS = 60_000  # the same for a model that was seen to think without an opening tag

_REASONS = {
    FinishReason.STOP: "stop eos eos_token end end_turn complete completed done finished",
    FinishReason.STOP_SEQUENCE: "stop_sequence",
    FinishReason.TOOL_CALLS: "tool_calls tool_call tool_use function_call function_calls",
    FinishReason.LENGTH: "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length limit",
    FinishReason.WINDOW_EXCEEDED: (
        "model_context_window_exceeded context_window_exceeded context_length_exceeded error_limit"
    ),
    FinishReason.REFUSAL: (
        "content_filter content_filtered refusal safety recitation blocklist prohibited_content spii sensitive "
        "guardrail_intervened error_toxic image_safety blocked language"
    ),
    FinishReason.PAUSE: "pause_turn pause",
    FinishReason.COMPACTION: "compaction",
}


_NO_LETTERS = re.compile("[^a-z]+")


def _plain(word: str) -> str:
    """Return a word's letters in lower case, so that MAX_TOKENS, maxTokens and max-tokens are the same word."""
    return _NO_LETTERS.sub("", word.lower().removeprefix("finish_reason_")) if word else ""


REASONS = {_plain(word): reason for reason, words in _REASONS.items() for word in words.split()}
UNCUT = (FinishReason.STOP, FinishReason.STOP_SEQUENCE, FinishReason.OTHER)  # after them a call may stand in the text
PLAIN_ENDS = (FinishReason.STOP, FinishReason.TOOL_CALLS)  # gateways send them after a word that says more
NO_ENDS = ("", "null", "none")
# Words for failures: of DeepSeek, OpenRouter, vLLM, Zhipu, Google, Cohere, Bedrock, and of gateways.
FAILURES = frozenset(
    map(
        _plain,
        "error abort aborted cancel cancelled canceled user_cancel failed failure network_error server_error timeout "
        "internal_error insufficient_system_resource insufficient_system_resources overloaded connection_error "
        "malformed_function_call malformed_model_output malformed_tool_use malformed_response unexpected_tool_call "
        "engine_error model_error rate_limit load unload".split(),
    )
)


# Halves of a surrogate pair, as JSON escapes them, at the end and at the beginning of a text. An escaped backslash
# before the u belongs to JSON within the text.
FIRST_HALF = re.compile(rb'(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})"')
SECOND_HALF = re.compile(rb'"(?=\\u[dD][c-fC-F][0-9a-fA-F]{2})')
# Fields of a whole answer that programs read. The last two are Perplexity's.
FIELDS = ("system_fingerprint", "service_tier", "citations", "search_results")


class Complained(Exception):
    """Raised for an error that the provider reports inside its stream. ``payload`` is the object with the error."""

    def __init__(self, payload: Any) -> None:
        super().__init__(f"error inside the stream: {payload}"[:500])
        self.payload = payload


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
        self._half = b""  # the first half of a character whose second half has not come yet
        self.has_ended = False  # set by the format's own last event
        self.is_done = False
        self._is_marked_done = False

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
        if self._half or b"\\u" in event.data:
            event = self._join_halves(event)
        if event.data.strip() == DONE:
            self._is_marked_done = self.is_done = True
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

    def _join_halves(self, event: ServerEvent) -> ServerEvent:
        """Move the first half of a character that was cut in two to the second one, in the next text that begins so."""
        data = event.data
        if half := self._half:
            data, joined = SECOND_HALF.subn(lambda _: b'"' + half, data, count=1)
            self._half = b"" if joined else half
        if found := FIRST_HALF.search(data):
            self._half = found[1]
            data = data[: found.start(1)] + data[found.end(1) :]
        return ServerEvent(data, event.name)

    def close(self) -> list[StreamEvent]:
        lost = self.say("\ufffd") if self._half and not self.has_thought else []
        return [*lost, *self._count(self._tags.close())]

    def note_end(self, word: Any) -> None:
        """Note the provider's word for the end, if there is one."""
        if not word:
            return
        word = str((word[0] if isinstance(word, list) and word else word) or "").strip()
        if _plain(word) in NO_ENDS and not word.isdecimal():
            return
        if self.end and is_plain_end(word) and not is_plain_end(self.end):
            return
        self.end = word

    def note_native_end(self, word: Any) -> None:
        """Note the word of the server behind a gateway, if it says more than the gateway's own."""
        if isinstance(word, str) and (is_failure(word) or _reason_of(word) not in (*PLAIN_ENDS, FinishReason.OTHER)):
            self.note_end(word)

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
        list(self._tags.close())
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
        if not (self.has_ended or self.end or (self._is_marked_done and has_answer)):
            return None
        reason = self._reason(calls, has_answer=has_answer)
        if not calls and reason in UNCUT:
            self._refuse_written_call()
        if reason not in CUT_SHORT:
            calls = [ToolCall(call.id, call.name, call.arguments or "{}") for call in calls]
        return Finished(
            usage=self.usage(),
            tool_calls=with_own_ids(restore_calls(calls, self.request.tools), self.request.messages),
            finish_reason=reason,
            provider_items=serialise(self.owner, self.pieces()),
            end=self.end,
            fields=self.fields,
        )

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
        reason = _reason_of(self.end) if self.end else FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        if reason is FinishReason.TOOL_CALLS and not calls:  # the calls were lost
            reason = FinishReason.OTHER
        if reason is FinishReason.OTHER:
            log.warning("unknown_end", owner=self.owner.name, end=self.end[:80])
        if reason is FinishReason.LENGTH and not has_answer:
            return FinishReason.THOUGHT_ONLY
        return reason


def document_of(event: ServerEvent) -> dict[str, Any] | None:
    """Return the event's object, or None for a keep-alive.

    Raises ``Complained`` for an error, and ``NotJson`` for damage.
    """
    if _is_empty(event):
        return None
    try:
        document = parse(event.data, takes_nan=True)
    except NotJson:
        if _names_keep_alive(event.name):
            return None
        raise
    if isinstance(document, list) and document and isinstance(document[0], dict):
        document = document[0]  # Google wraps an error in a list
    if not isinstance(document, dict):
        if _names_keep_alive(event.name) or not document:
            return None
        raise NotJson("not an object")
    if event.name:
        document.setdefault("type", event.name)
    # This runs for each piece of an answer. Few have more than one of these fields, and most of them hold longer words.
    for name in NAMING:
        if (word := document.get(name)) and _names_keep_alive(word):
            return None
    if "error" in (event.name, document.get("type"), document.get("object")):
        raise Complained(document)
    refuse_errors(document, *map(document.get, HOLDERS))
    return document


NAMING = ("type", "event", "object", "status")  # fields that say what an event is
HOLDERS = ("delta", "message", "response")  # objects of an event that may hold an error instead of an answer


def refuse_errors(*objects: Any) -> None:
    """Raise ``Complained`` if one of these values holds an error."""
    for each in objects:
        if isinstance(each, dict) and (each.get("error") or each.get("errors")):
            raise Complained(each)


def is_plain_end(word: str) -> bool:
    return _reason_of(word) in PLAIN_ENDS


def is_failure(word: str) -> bool:
    return any(one in FAILURES for one in _words_of(word))


def _reason_of(word: str) -> FinishReason:
    return next((REASONS[one] for one in _words_of(word) if one in REASONS), FinishReason.OTHER)


def _words_of(word: str) -> tuple[str, ...]:
    """Return an end's word, and its parts around a colon, as in Google's ``function_call_filter: ...``."""
    return (_plain(word), *map(_plain, word.split(":")[::-1])) if ":" in word else (_plain(word),)


def is_keep_alive(event: ServerEvent) -> bool:
    """Check for an event that is certainly only a keep-alive."""
    return _is_empty(event) or bool(event.name and _names_keep_alive(event.name))


def _names_keep_alive(word: Any) -> bool:
    """Check whether an event's type is that of a keep-alive. The length is tested first: most types are longer."""
    return isinstance(word, str) and 0 < len(word) <= KEEP_ALIVE_CHARS and _plain(word) in KEEP_ALIVE_NAMES


def _is_empty(event: ServerEvent) -> bool:
    """Check for data that is only a keep-alive. Objects, as nearly all events are, are excluded first."""
    return not event.data.startswith(b"{") and bool(KEEP_ALIVE.fullmatch(event.data.strip()))


# Types of parts, by their letters: those of thinking, and those without text of the answer. All others are text.
THOUGHT_PART = re.compile("think|thought|reasoning|summary|analysis")
SILENT_PART = re.compile(
    "reference|citation|image|audio|video|file|document|tool|search|redacted|signature|compaction|container"
)
INSIDE = ("text", "thinking", "think", "reasoning", "reasoning_content", "refusal", "content", "summary", "value")


def spoken_in(content: Any) -> Iterator[tuple[str, bool]]:
    """Yield each text of a content, and whether it is thinking. A content is a string, a part, or a list of both."""
    match content:
        case str():
            yield content, False
        case list():
            for part in content:
                yield from spoken_in(part)
        case dict():
            kind = _plain(str(content.get("type") or ""))
            if not SILENT_PART.search(kind):
                yield text_inside(content), bool(THOUGHT_PART.search(kind))
        case None:
            return
        case _:
            raise TypeError(f"expected text, found {type(content).__name__}")


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, or a single object as a list. Other entries, as some servers send, are left out."""
    entries = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def text_inside(value: Any) -> str:
    """Return all text of a part at any depth."""
    match value:
        case str():
            return value
        case list():
            return "".join(map(text_inside, value))
        case dict():
            return next((text for name in INSIDE if (text := text_inside(value.get(name)))), "")
    return ""


def arguments_in(value: Any) -> str:
    """Return a call's arguments, or a piece of them, as text, since some servers send the object itself."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value).decode()


def whole_number(value: Any) -> int | None:
    """Read an index that a server may write as 1, 1.0 or "1"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) else None


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
