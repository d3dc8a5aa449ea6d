"""One model call: the only place that reads a provider's stream. No transaction and no database connection is held here."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import connection

from dialogs.drafts import Draft
from dialogs.leases import Lease
from dominds.llm.messages import Request, ToolCall
from dominds.llm.provider import MalformedStream, Provider, ProviderError, ProviderTimeout, StreamAborted
from dominds.llm.stream import Finished, Started, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable
from remediation.decisions import Abort, Continue, Interrupt, StreamDecision

TOTAL_SECONDS = 30 * 60
WATCH_EVERY_CHARS = 200

Watch = Callable[[str], StreamDecision]  # asked with each new stretch of output


@dataclass
class Reply:
    """What came of a call. Exactly one of ``error``, ``stopped``, ``interrupted`` is set, or none: then it is complete."""

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
    draft: Draft | None,
    watch: Watch | None = None,
    seconds: float = TOTAL_SECONDS,
) -> Reply:
    """Read one answer to its end. Text goes to ``draft`` as it comes; a stop or a lost lease closes the connection."""
    connection.close()  # back to the pool: a model call takes minutes (faults P1)
    reply, parts, started = Reply(), [], time.monotonic()
    stream = provider.stream(request)
    unwatched = ""
    try:
        with lease.interruptible(stream.abort, deadline=started + seconds):
            for event in stream:
                match event:
                    case Started(cursor):
                        reply.cursor = cursor
                    case TextDelta(text):
                        if reply.first_token_ms is None:
                            reply.first_token_ms = round((time.monotonic() - started) * 1000)
                        parts.append(text)
                        unwatched += text
                        if draft is not None:
                            draft.write(text)
                    case ToolCallDelta(text):
                        unwatched += text
                    case Finished(usage, calls, reason, items):
                        reply.usage, reply.tool_calls, reply.finish_reason = usage, calls, reason
                        reply.provider_items = items
                if watch is None:
                    unwatched = ""
                elif len(unwatched) >= WATCH_EVERY_CHARS:
                    stretch, unwatched = unwatched, ""
                    match watch(stretch):
                        case Interrupt(reason):
                            reply.interrupted = reason
                        case Abort(message):
                            reply.aborted = message
                        case Continue():
                            continue
                    stream.abort()
                    break
    except StreamAborted:
        reply.stopped, reply.lost = lease.stopping, not lease.stopping and not lease.holds
        if not (reply.stopped or reply.lost):
            reply.error = ProviderTimeout(f"The answer took longer than {seconds:,.0f} seconds and was cut off.")
    except ProviderError as error:
        reply.error = error
    if draft is not None:
        draft.flush()
    reply.text = "".join(parts)
    if reply.is_complete and not reply.finish_reason:
        reply.error = MalformedStream("The provider's stream ended without its explicit end.")
    return reply
