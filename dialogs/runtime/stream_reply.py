"""One model call, from request to reply. Only this module reads providers' streams, and it holds no database
connection."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from django.db import connection

from dialogs.context.sizes import StreamWatch
from dialogs.runtime.live_text import LiveAnswer
from dialogs.store.lease import Lease
from dominds.llm.json_text import is_whole
from dominds.llm.messages import ToolCall
from dominds.llm.provider import MalformedStream, ProviderError, ProviderTimeout, Stream, StreamAborted
from dominds.llm.stream import (
    CUT_SHORT,
    Finished,
    FinishReason,
    ReasoningDelta,
    Rethought,
    Started,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from dominds.llm.usage import Usage, UsageReport, UsageUnavailable
from dominds.worker.seats import seats
from remediation.budget import is_full
from remediation.decisions import Abort, Continue, Interrupt

TOTAL_SECONDS = 30 * 60
WATCH_EVERY_CHARS = 200

# Notices to people about an answer that did not end by itself. The answer is kept as it came.
LONGEST_OUTPUT = "The settings of its agent, its model or its server say how long it may be."
WINDOW_IS_FULL = "The model's context window is full."
NOTICES: dict[str, str] = {
    FinishReason.LENGTH: f"The answer was cut off at the longest output that is allowed. {LONGEST_OUTPUT}",
    FinishReason.THOUGHT_ONLY: (
        "The model spent all of its output on thinking, and said nothing. A lower effort leaves some for an answer. "
        f"{LONGEST_OUTPUT}"
    ),
    FinishReason.WINDOW_EXCEEDED: "The answer was cut off: the model's context window is full.",
    FinishReason.REFUSAL: "The model, or a filter of its provider, refused to answer.",
    FinishReason.PAUSE: "The provider paused before the answer was whole. Send a message to go on.",
    FinishReason.COMPACTION: "The provider shortened the conversation, and ended there. Send a message to go on.",
    FinishReason.OTHER: "The answer was cut off, or ended in a way that is not known here.",
}
OF_LENGTH = (FinishReason.LENGTH, FinishReason.THOUGHT_ONLY)
SILENT = "The model ended without a word."
UNKNOWN_END = "The provider ended the answer with “{}”, which is not known here: it may not be whole."
CUT_CALL = "The call of {} was cut off where the output ended, and was not run. {}"


class Ending(Enum):
    """The end of a call. The value names it in traces."""

    COMPLETE = "complete"  # the provider ended it; its finish reason tells whether the answer is whole
    FAILED = "failed"
    STOPPED = "stopped"  # by a person
    LOST = "lost"  # another worker has the dialog now
    INTERRUPTED = "interrupted"  # by a policy that keeps what was said
    ABORTED = "aborted"  # by a policy that does not keep it


@dataclass
class Reply:
    """The result of a call."""

    text: str = ""  # with the refusal at its end
    reasoning: str = ""
    reasoning_ms: int = 0  # from its first to its last word
    tool_calls: tuple[ToolCall, ...] = ()
    usage: UsageReport = field(default_factory=UsageUnavailable)
    finish_reason: str = ""
    end: str = ""  # the provider's own word for the finish reason
    fields: Mapping[str, Any] = field(default_factory=dict)  # what else the provider said, for programs
    provider_items: tuple[str, ...] = ()
    cursor: str = ""
    first_token_ms: int | None = None
    ending: Ending = Ending.COMPLETE
    reason: str = ""  # of a call that failed, or that a policy ended
    error: ProviderError | None = None  # of a call that failed

    def fail(self, error: ProviderError) -> None:
        self.ending, self.reason, self.error = Ending.FAILED, str(error), error

    @property
    def is_complete(self) -> bool:
        return self.ending is Ending.COMPLETE

    @property
    def was_left(self) -> bool:
        """Check whether the worker left the call for reasons of its own."""
        return self.ending in (Ending.STOPPED, Ending.LOST)

    @property
    def error_for_circuit(self) -> ProviderError | None:
        """Return the error by which a circuit breaker judges the model. A call that was left says nothing about it."""
        return StreamAborted("We left.") if self.was_left else self.error

    @property
    def has_cut_call(self) -> bool:
        """Check whether the output ended inside the last call's arguments."""
        return self.finish_reason in CUT_SHORT and bool(self.tool_calls) and not is_whole(self.tool_calls[-1].arguments)

    @property
    def notice(self) -> str:
        """Return why the answer is not whole; empty if it is whole, or goes on after its tool calls."""
        if self.finish_reason == FinishReason.OTHER:
            return UNKNOWN_END.format(self.end)
        if self.tool_calls:
            why = WINDOW_IS_FULL if self.finish_reason == FinishReason.WINDOW_EXCEEDED else LONGEST_OUTPUT
            return CUT_CALL.format(self.tool_calls[-1].name, why) if self.has_cut_call else ""
        return NOTICES.get(self.finish_reason, "" if self.text.strip() else SILENT)


def stream_reply(
    lease: Lease,
    stream: Stream,
    live: LiveAnswer | None,
    watch: StreamWatch | None = None,
    seconds: float = TOTAL_SECONDS,
    window: int | None = None,
) -> Reply:
    """Read one answer to its end, with text and reasoning sent to ``live``. A stop or a lost lease ends it.

    Most servers give the reason "length" also when the model's ``window`` is full. The reported tokens tell which.
    """
    connection.close()  # back to the pool: a model call takes minutes
    reading = _Reading(stream, live, watch)
    reply, deadline = reading.reply, time.monotonic() + seconds
    try:
        with seats.without_seat(), lease.interruptible(stream.abort, deadline):
            stream.run(reading.take)
    except StreamAborted:
        if reply.is_complete:  # no policy ended it
            if lease.stopping:
                reply.ending = Ending.STOPPED
            elif not lease.holds:
                reply.ending = Ending.LOST
            else:
                reply.fail(ProviderTimeout(f"The answer took longer than {seconds:,.0f} seconds and was cut off."))
    except ProviderError as error:
        reply.fail(error)
    if live is not None:
        live.flush()
    reply.text, reply.reasoning = "".join((*reading.parts, *reading.refusals)), "".join(reading.thoughts)
    if reading.refusals:
        reply.fields = {**reply.fields, "refusal": "".join(reading.refusals)}
    if reply.is_complete and reply.finish_reason in OF_LENGTH and isinstance(reply.usage, Usage):
        _judge_length(reply, reply.usage.total_tokens, watch, window)
    if reply.is_complete and not reply.finish_reason:
        reply.fail(MalformedStream("The provider's stream ended without its explicit end."))
    return reply


def _judge_length(reply: Reply, tokens: int, watch: StreamWatch | None, window: int | None) -> None:
    """Note what an answer filled that took the longest output: the room of its policy, or the model's window."""
    is_text = reply.finish_reason == FinishReason.LENGTH and not reply.tool_calls
    if watch is not None and is_text and (reason := watch.filled_by(tokens)):
        reply.ending, reply.reason = Ending.INTERRUPTED, reason
    if window is not None and is_full(tokens, window):
        reply.finish_reason = FinishReason.WINDOW_EXCEEDED


class _Reading:
    """The reply of a call, built from its events on the event loop of all calls, so nothing here may wait."""

    def __init__(self, stream: Stream, live: LiveAnswer | None, watch: StreamWatch | None) -> None:
        self.reply = Reply()
        self.parts: list[str] = []
        self.refusals: list[str] = []  # few words, which readers get with the turn
        self.thoughts: list[str] = []
        self._stream, self._live, self._watch = stream, live, watch
        self._unwatched = ""
        self._has_shown_thoughts = False
        self._started = self._thinking_since = time.monotonic()

    def take(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(text, is_refusal):
                if not self.parts and not self.refusals:
                    self.reply.first_token_ms = round((time.monotonic() - self._started) * 1000)
                (self.refusals if is_refusal else self.parts).append(text)
                if self._live is not None and not self._has_shown_thoughts and not is_refusal:
                    self._live.text.write(text)
                self._ask_watch(text)
            case ReasoningDelta(text):
                self._think(text)
            case ToolCallDelta(text):
                self._ask_watch(text)
            case Rethought():
                self._rethink()
            case Started(cursor):
                self.reply.cursor = cursor
            case Finished(usage, calls, reason, items, end, fields):
                self.reply.usage, self.reply.tool_calls, self.reply.finish_reason = usage, calls, reason
                self.reply.provider_items, self.reply.end = items, end
                self.reply.fields = fields

    def _rethink(self) -> None:
        """Turn text into reasoning. Readers keep it as text until the turn says that it was thought."""
        self.thoughts += self.parts
        self.parts, self.refusals = [], []
        self._has_shown_thoughts = True

    def _think(self, text: str) -> None:
        now = time.monotonic()
        if not self.thoughts:
            self._thinking_since = now
        self.thoughts.append(text)
        self.reply.reasoning_ms = round((now - self._thinking_since) * 1000)
        if self._live is not None:
            self._live.reasoning.write(text)
        self._ask_watch(text)

    def _ask_watch(self, text: str) -> None:
        if self._watch is None:
            return
        self._unwatched += text
        if len(self._unwatched) < WATCH_EVERY_CHARS:
            return
        stretch, self._unwatched = self._unwatched, ""
        match self._watch(stretch):
            case Interrupt(reason):
                self.reply.ending, self.reply.reason = Ending.INTERRUPTED, reason
            case Abort(message):
                self.reply.ending, self.reply.reason = Ending.ABORTED, message
            case Continue():
                return
        self._stream.abort()
