"""Calls MCP servers from ordinary threads. One background event loop per process holds one session per server.

Imported only when a server is asked: the SDK takes a second to load.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeVar

import httpx2
import structlog
from django.conf import settings
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT, create_mcp_http_client
from mcp.types import CallToolResult, Tool

from dialogs.tools import mcp_program
from dialogs.tools.mcp_config import McpFailed, Server, resolved
from dialogs.tools.tool import Progress, Stopped
from dominds import budgets, outbound_http
from dominds.redaction import redact

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 15  # to start a program, or to connect to a host, and to say hello
ACCEPT_SECONDS = 10.0  # for a host to accept a connection
LIST_SECONDS = 15
CALL_SECONDS = 60
GRACE_SECONDS = 5  # for the loop to answer beyond its own time-outs
MAX_TOOL_PAGES = 20
MAX_LOGGED_LINE_CHARS = 2_000

T = TypeVar("T")


def list_tools(server: Server) -> list[Tool]:
    """What the server offers now. Raises ``McpFailed``."""
    return _sessions.run(_sessions.list_tools(server), CONNECT_SECONDS + LIST_SECONDS)


def call_tool(
    server: Server,
    name: str,
    arguments: Mapping[str, Any],
    progress: Progress | None = None,
    seconds: float = CALL_SECONDS,
) -> CallToolResult:
    """Run one tool. Raises ``McpFailed`` or ``Stopped``, after which whether the call took effect is not known."""
    progress = progress or Progress()
    work = _sessions.call_tool(server, name, dict(arguments), progress, seconds)
    return _sessions.run(work, CONNECT_SECONDS + seconds, progress)


def close() -> None:
    """End all sessions and the servers that they started."""
    _sessions.close()


@dataclass(eq=False)
class _Session:
    """One open session, in a task of its own, since it must be closed where it was opened.

    A dropped one serves the calls that still run on it, and then closes.
    """

    server: Server
    client: "asyncio.Future[Client]"
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    users: int = 0
    dropped: bool = False
    too_much: str = ""  # what the server answered over its bound; the SDK reports only a closed connection

    def over_budget(self, what: str) -> None:
        self.too_much = what

    def close_when_idle(self) -> None:
        if self.dropped and self.users == 0:
            self.closing.set()


class _Sessions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._open: dict[str, _Session] = {}

    # From any thread

    def run(self, work: Coroutine[Any, Any, T], seconds: float, progress: Progress | None = None) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._running_loop())
        if progress is not None:
            progress.on_stop(future.cancel)
        try:
            return future.result(seconds + GRACE_SECONDS)
        except CancelledError:
            raise Stopped from None
        except TimeoutError:
            future.cancel()
            raise McpFailed("The MCP client did not answer in time.") from None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():  # a forked child has no thread that runs the loop
                self._loop, self._pid, self._open = asyncio.new_event_loop(), os.getpid(), {}
                threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True).start()
            return self._loop

    def close(self) -> None:
        if self._loop is not None and self._pid == os.getpid() and self._open:
            asyncio.run_coroutine_threadsafe(self._close_all(), self._loop).result(GRACE_SECONDS)

    # In the loop

    async def list_tools(self, server: Server) -> list[Tool]:
        tools: list[Tool] = []
        cursor: str | None = None
        async with self._client(server, LIST_SECONDS) as client:
            for _ in range(MAX_TOOL_PAGES):
                page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                tools += page.tools
                cursor = page.next_cursor
                if not cursor:
                    break
        return tools

    async def call_tool(
        self, server: Server, name: str, arguments: dict[str, Any], watched: Progress, seconds: float
    ) -> CallToolResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            """Servers that count without a word are shown by their numbers."""
            watched.report(message or (f"{progress:g} / {total:g}" if total else f"{progress:g}"))

        async with self._client(server, seconds) as client:
            answer = await client.call_tool(name, arguments, progress_callback=report)
        return answer  # noqa: RET504  mypy cannot see that the block above always returns or raises

    @asynccontextmanager
    async def _client(self, server: Server, seconds: float) -> AsyncIterator[Client]:
        """The server's client for one piece of work. After a failure the next work opens a new session."""
        session = self._session(server)
        session.users += 1
        try:
            client = await asyncio.shield(session.client)  # others may be waiting for it, too
            async with asyncio.timeout(seconds):
                yield client
        except McpFailed:
            raise
        except TimeoutError:
            self._drop(session)
            raise McpFailed(f"The MCP server '{server.server_id}' did not answer within {seconds} seconds.") from None
        except Exception as error:
            self._drop(session)
            raise McpFailed(
                f"The MCP server '{server.server_id}' failed: {session.too_much or _reason(error)}"
            ) from error
        finally:
            session.users -= 1
            session.close_when_idle()

    def _session(self, server: Server) -> _Session:
        known = self._open.get(server.server_id)
        if known is not None and known.server == server:
            return known
        if known is not None:  # mcp.yaml says something else now
            self._drop(known)
        session = self._open[server.server_id] = _Session(server, asyncio.get_running_loop().create_future())
        session.task = asyncio.create_task(self._live(session))
        return session

    async def _live(self, session: _Session) -> None:
        """Open a session, hand out its client, and stay until nobody needs it."""
        server_id = session.server.server_id
        try:
            async with asyncio.timeout(CONNECT_SECONDS) as opening, _connected(session) as client:
                opening.reschedule(None)
                session.client.set_result(client)
                await session.closing.wait()
        except Exception as error:  # noqa: BLE001  whatever a transport raises ends this session and nothing else
            reason = session.too_much or _reason(error)
            if session.client.done():
                log.warning("mcp_session_ended", server=server_id, error=redact(reason))
            else:
                late = isinstance(error, TimeoutError)
                reason = f"no answer within {CONNECT_SECONDS} seconds" if late else reason
                session.client.set_exception(McpFailed(f"The MCP server '{server_id}' cannot be reached: {reason}"))
                session.client.exception()  # seen, even if nobody waits any more
        finally:
            self._drop(session)

    def _drop(self, session: _Session) -> None:
        session.dropped = True
        if self._open.get(session.server.server_id) is session:
            del self._open[session.server.server_id]
        session.close_when_idle()

    async def _close_all(self) -> None:
        sessions = list(self._open.values())
        for session in sessions:
            session.closing.set()
        await asyncio.gather(*(session.task for session in sessions if session.task), return_exceptions=True)


@asynccontextmanager
async def _connected(session: _Session) -> AsyncIterator[Client]:
    server = session.server
    if server.command:
        with _stderr_logged(server.server_id) as stderr:
            async with Client(mcp_program.running(server, stderr, session.over_budget)) as client:
                yield client
        return
    if server.is_typed:
        allowed = {"allow_private": settings.PRIVATE_WEBHOOKS, "allow_loopback": True}
        await asyncio.to_thread(outbound_http.check, server.url, **allowed)
    async with (
        _http_client(session) as http,
        Client(streamable_http_client(server.url, http_client=http, max_sse_event_size=None)) as client,
    ):
        yield client


def _http_client(session: _Session) -> httpx2.AsyncClient:
    """Counts what the server answers while it is read. What was packed although nobody asked could unpack to anything."""

    async def bound(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            session.too_much = f"it packed its answer ({encoding}), which was not asked for."
            raise McpFailed(session.too_much)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, session)

    client = create_mcp_http_client(
        {**resolved(session.server.headers), "Accept-Encoding": "identity"},
        httpx2.Timeout(MCP_DEFAULT_TIMEOUT, connect=ACCEPT_SECONDS, read=MCP_DEFAULT_SSE_READ_TIMEOUT),
    )
    client.event_hooks = {"response": [bound]}
    return client


class _Counted(httpx2.AsyncByteStream):
    """The same bytes. Fails when one message among them, up to a blank line, goes over the bound."""

    def __init__(self, stream: httpx2.AsyncByteStream, session: _Session) -> None:
        self._stream, self._session = stream, session

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            end = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n"))
            received = len(chunk) - end if end >= 0 else received + len(chunk)
            if received > budgets.TOOL_BYTES.most:
                self._session.too_much = budgets.TOOL_BYTES.sentence("it answered with")
                raise McpFailed(self._session.too_much)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@contextmanager
def _stderr_logged(server_id: str) -> Iterator[TextIO]:
    """A server's complaints become log lines, without secrets, instead of running past the log."""
    reading, writing = os.pipe()
    threading.Thread(target=_log_lines, args=(server_id, reading), name=f"mcp-{server_id}", daemon=True).start()
    with os.fdopen(writing, "w") as stderr:
        yield stderr


def _log_lines(server_id: str, reading: int) -> None:
    with os.fdopen(reading, errors="replace") as lines:
        while line := lines.readline(MAX_LOGGED_LINE_CHARS):
            log.info("mcp_server_says", server=server_id, line=redact(line.rstrip()))


def _reason(error: BaseException) -> str:
    """The innermost reason: task groups wrap what went wrong in groups of one."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, httpx2.ConnectTimeout):
        return f"it did not accept a connection within {ACCEPT_SECONDS:g} seconds"
    return str(error) or type(error).__name__


_sessions = _Sessions()
atexit.register(close)
