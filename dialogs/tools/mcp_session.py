"""One session with an MCP server: how it connects, what it may answer, and how long it stays open."""

import asyncio
import os
import re
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

import httpx2
import structlog
from django.conf import settings
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST, ElicitRequestParams, ElicitResult, ErrorData, ToolListChangedNotification

from dialogs.tools import mcp_config, mcp_lenient, mcp_program
from dialogs.tools.elicitation import Asking
from dialogs.tools.mcp_config import McpFailed, Server, resolve_values
from dominds import budgets, outbound_http
from dominds.llm.json_text import NotJson, dump, parse
from dominds.redaction import redact

log = structlog.get_logger(__name__)

ASKS_PERSON = "A person is to be asked, and several calls are under way"
# What servers say about a session that they no longer know, if they do not answer 404 as the protocol asks.
FORGOTTEN = re.compile(
    rb"\b(no valid|invalid|unknown|expired|missing|no) (mcp[- ])?session\b|\bserver not initialized\b"
    rb"|\bsession( id)? (was |is |has )?(not (found|valid)|invalid|unknown|expired|terminated|closed|required|missing)",
    re.I,
)
TAG = re.compile(r"<(style|script)\b.*?</\1>|<[^<>]+>", re.S)  # in HTML pages that servers send with an error
LONGEST_QUOTE = 300
ACCEPT_SECONDS = 10.0  # for a host to accept a connection
REST_SECONDS = 600  # without work, after which the session of a single dialog is closed
SEND_SECONDS = 30.0  # for a host to receive a request
SILENT_SECONDS = 300.0  # between two pieces of an answer; each piece of work has a shorter time-out
MAX_LOGGED_LINE_CHARS = 2_000
JSON = "application/json"
# A server that closed so many event streams within so many seconds, as soon as they began, is no longer listened to.
MOST_LISTENINGS, LISTENING_SECONDS = 4, 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a session: a server, and for a session of a single dialog, that dialog."""

    server: Server
    dialog: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return (self.server.server_id, self.dialog)


@dataclass(eq=False)
class Session:
    """An open session. It has a task of its own, since it must be closed in the task that opened it.

    A dropped session still serves the calls that run on it, and then closes. The session of a single dialog also closes
    after ``REST_SECONDS`` without work.
    """

    place: Place
    client: "asyncio.Future[Client]"
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    users: int = 0
    dropped: bool = False
    too_much: str = ""  # the bound that an answer exceeded, since the SDK reports only a closed connection
    refusal: str = ""  # the text of the server's last HTTP error, which the SDK drops
    forgotten: bool = False  # the server no longer knows this session, and did not act on the last request
    asking: list[Asking] = field(default_factory=list)  # of the calls under way
    changed: Callable[[], object] = lambda: None  # called when the server's list of tools has changed
    rested_since: float = field(default_factory=time.monotonic)

    @property
    def server(self) -> Server:
        return self.place.server

    @property
    def is_usable(self) -> bool:
        return not (self.dropped or self.forgotten or self.closing.is_set())

    async def until_over(self) -> None:
        """Wait until nobody needs the session."""
        while not self.closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(REST_SECONDS if self.place.dialog else None):
                    await self.closing.wait()
            if self.users == 0 and time.monotonic() - self.rested_since >= REST_SECONDS:
                return

    def respond(self, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Answer a question for a person. It is refused if several calls are under way, since any of them may have
        asked.
        """
        if len(self.asking) != 1:
            return ErrorData(code=INVALID_REQUEST, message=ASKS_PERSON)
        return self.asking[0].respond(params)

    def over_budget(self, what: str) -> None:
        self.too_much = what

    def close_when_idle(self) -> None:
        if self.dropped and self.users == 0:
            self.closing.set()


async def hear_changes(session: Session, client: Client) -> None:
    """Listen for changes of the list of tools. Servers before 2026-07-28 announce them unasked, to ``connect``."""
    with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
        async with client.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                session.changed()


@asynccontextmanager
async def connect(session: Session) -> AsyncIterator[Client]:
    server = session.server

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            session.changed()

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        return session.respond(params)

    def leave_out(tool: str, reason: str) -> None:
        mcp_config.leave_out(server.server_id, tool, reason)

    if server.command:
        with _stderr_logged(server.server_id) as stderr:
            program = mcp_program.run_program(server, stderr, session.over_budget, session.closing.set)
            lenient = mcp_lenient.lenient(program, leave_out)
            async with Client(lenient, message_handler=hear, elicitation_callback=ask) as client:
                yield client
        return
    if server.is_typed:
        allowed = {"allow_private": settings.PRIVATE_WEBHOOKS, "allow_loopback": True}
        await asyncio.to_thread(outbound_http.check, server.url, **allowed)
    async with (
        _http_client(session) as http,
        Client(
            mcp_lenient.lenient(
                streamable_http_client(server.url, http_client=http, max_sse_event_size=None), leave_out
            ),
            message_handler=hear,
            elicitation_callback=ask,
        ) as client,
    ):
        yield client


def _http_client(session: Session) -> httpx2.AsyncClient:
    """Return a client that bounds the server's answers, and corrects those that the SDK would not understand."""

    listened: deque[float] = deque(maxlen=MOST_LISTENINGS)

    async def receive(response: httpx2.Response) -> None:
        is_stream = _bound(response, session)
        method, status = response.request.method, response.status_code
        if method == "GET" and response.is_success and (not is_stream or _ends_at_once(listened)):
            response.status_code = 405  # no events will come: the SDK would reconnect each second
        elif method == "POST" and status == 200 and not is_stream:
            await _correct_document(response)
        elif method == "POST" and status >= 400:
            await _note_refusal(response, session)

    return httpx2.AsyncClient(
        headers={**resolve_values(session.server.headers), "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(SEND_SECONDS, connect=ACCEPT_SECONDS, read=SILENT_SECONDS),
        event_hooks={"response": [receive]},
    )


def _bound(response: httpx2.Response, session: Session) -> bool:
    """Have the answer fail when it becomes too large, and return whether it is a stream of events.

    Raises ``McpFailed`` for a compressed answer, which could unpack to any size.
    """
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        session.too_much = f"it packed its answer ({encoding}), which was not asked for."
        raise McpFailed(session.too_much)
    is_stream = "text/event-stream" in response.headers.get("content-type", "").lower()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Counted(response.stream, session, is_events=is_stream)
    return is_stream


async def _correct_document(response: httpx2.Response) -> None:
    """Have the SDK read an answer as JSON if it is JSON, whatever content type it has."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    document = _document(b"".join([piece async for piece in response.stream]))
    response.stream = httpx2.ByteStream(document)
    if document.startswith(b"{"):
        response.headers["content-type"] = JSON


async def _note_refusal(response: httpx2.Response, session: Session) -> None:
    """Note the server's words, which the SDK drops, and whether it no longer knows the session."""
    words, status = await response.aread(), response.status_code
    said = " ".join(TAG.sub(" ", words.decode(errors="replace")).split())[:LONGEST_QUOTE]
    session.refusal = f"it answered with HTTP {status}: {said}" if said else f"it answered with HTTP {status}"
    if "mcp-session-id" in response.request.headers:
        is_over = status in (404, 410) or (status == 400 and says_forgotten(words))
        session.forgotten = session.forgotten or is_over


def _ends_at_once(listened: deque[float]) -> bool:
    """Note that an event stream was opened, and check whether the latest ones ended as soon as they began."""
    listened.append(time.monotonic())
    return len(listened) == MOST_LISTENINGS and listened[-1] - listened[0] < LISTENING_SECONDS


def _document(body: bytes) -> bytes:
    """Return the JSON of an answer without a byte order mark, and without a list around a single message."""
    text = body.removeprefix(b"\xef\xbb\xbf").strip()
    if text.startswith(b"["):
        with suppress(NotJson):
            return dump(each[0]) if len(each := parse(text)) == 1 else body
    return text if text.startswith(b"{") else body


def says_forgotten(words: bytes) -> bool:
    """Check whether a refusal is about the session, and not about the request."""
    return bool(FORGOTTEN.search(words))


class _Counted(httpx2.AsyncByteStream):
    """A stream of the same bytes that fails when one message in it exceeds the bound. A blank line ends a message."""

    def __init__(self, stream: httpx2.AsyncByteStream, session: Session, *, is_events: bool) -> None:
        self._stream, self._session, self._is_events = stream, session, is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            end = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n"))
            received = len(chunk) - end if end >= 0 else received + len(chunk)
            if received > budgets.TOOL_BYTES.most:
                self._session.too_much = budgets.TOOL_BYTES.sentence("it answered with")
                raise McpFailed(self._session.too_much)
            yield chunk
        if self._is_events:
            yield b"\n\n"  # some servers leave out the blank line after the last event

    async def aclose(self) -> None:
        await self._stream.aclose()


@contextmanager
def _stderr_logged(server_id: str) -> Iterator[TextIO]:
    """Yield a file for a server's standard error. Its lines are logged, without secrets."""
    reading, writing = os.pipe()
    threading.Thread(target=_log_lines, args=(server_id, reading), name=f"mcp-{server_id}", daemon=True).start()
    with os.fdopen(writing, "w") as stderr:
        yield stderr


def _log_lines(server_id: str, reading: int) -> None:
    with os.fdopen(reading, errors="replace") as lines:
        while line := lines.readline(MAX_LOGGED_LINE_CHARS):
            log.info("mcp_server_says", server=server_id, line=redact(line.rstrip()))
