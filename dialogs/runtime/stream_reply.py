"""One model call from request to reply. No other module reads providers' streams; no database connection is held here."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import connection

from dialogs.runtime.live_text import LiveText
from dialogs.store.lease import Lease
from dominds.llm.messages import Request, ToolCall
from dominds.llm.provider import MalformedStream, Provider, ProviderError, ProviderTimeout, Stream, StreamAborted
from dominds.llm.stream import Finished, Started, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable
from remediation.decisions import Abort, Continue, Interrupt, StreamDecision

TOTAL_SECONDS = 30 * 60
WATCH_EVERY_CHARS = 200

Watch = Callable[[str], StreamDecision]  # asked with each new stretch of output


@dataclass
class Reply:
    """The result of a call. Exactly one of ``error``, ``stopped``, ``interrupted`` is set, or none: then it is complete."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: UsageReport = field(default_factory=UsageUnavailable)
    finish_reason: str = ""
    provider_items: tuple[str, ...] = ()
    cursor: str = ""
    first_token_ms: int | None = None
    error: ProviderError | None = None
    stopped: bool = False
    lost: bool = False
    interrupted: str = ""
    aborted: str = ""

    @property
    def is_complete(self) -> bool:
        return not (self.error or self.stopped or self.lost or self.interrupted or self.aborted)


def stream_reply(
    lease: Lease,
    provider: Provider,
    request: Request,
    live_text: LiveText | None,
    watch: Watch | None = None,
    seconds: float = TOTAL_SECONDS,
) -> Reply:
    """Read one answer to its end. Text goes to ``live_text`` as it comes; a stop or a lost lease closes the connection."""
    connection.close()  # back to the pool: a model call takes minutes
    stream = provider.stream(request)
    reading = _Reading(stream, live_text, watch)
    reply, deadline = reading.reply, time.monotonic() + seconds
    try:
        with lease.interruptible(stream.abort, deadline):
            stream.run(reading.take)
    except StreamAborted:
        if not (reply.interrupted or reply.aborted):
            reply.stopped, reply.lost = lease.stopping, not lease.stopping and not lease.holds
            if not (reply.stopped or reply.lost):
                reply.error = ProviderTimeout(f"The answer took longer than {seconds:,.0f} seconds and was cut off.")
    except ProviderError as error:
        reply.error = error
    if live_text is not None:
        live_text.flush()
    reply.text = "".join(reading.parts)
    if reply.is_complete and not reply.finish_reason:
        reply.error = MalformedStream("The provider's stream ended without its explicit end.")
    return reply


class _Reading:
    """The reply of a call, built from its events. The event loop of all calls runs this: nothing here may wait."""

    def __init__(self, stream: Stream, live_text: LiveText | None, watch: Watch | None) -> None:
        self.reply = Reply()
        self.parts: list[str] = []
        self._stream, self._live_text, self._watch = stream, live_text, watch
        self._unwatched = ""
        self._started = time.monotonic()

    def take(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(text):
                if not self.parts:
                    self.reply.first_token_ms = round((time.monotonic() - self._started) * 1000)
                self.parts.append(text)
                if self._live_text is not None:
                    self._live_text.write(text)
                self._ask_watch(text)
            case ToolCallDelta(text):
                self._ask_watch(text)
            case Started(cursor):
                self.reply.cursor = cursor
            case Finished(usage, calls, reason, items):
                self.reply.usage, self.reply.tool_calls, self.reply.finish_reason = usage, calls, reason
                self.reply.provider_items = items

    def _ask_watch(self, text: str) -> None:
        if self._watch is None:
            return
        self._unwatched += text
        if len(self._unwatched) < WATCH_EVERY_CHARS:
            return
        stretch, self._unwatched = self._unwatched, ""
        match self._watch(stretch):
            case Interrupt(reason):
                self.reply.interrupted = reason
            case Abort(message):
                self.reply.aborted = message
            case Continue():
                return
        self._stream.abort()
