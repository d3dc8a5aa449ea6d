"""Calls of MCP servers from ordinary threads, through one background event loop per process with a session per server.

This module is imported only when a server is asked, because the SDK takes a second to load.
"""

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import httpx2
import structlog
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, Tool
from pydantic import ValidationError

from dialogs.tools import mcp_config
from dialogs.tools.elicitation import Asking
from dialogs.tools.mcp_config import McpFailed, Server
from dialogs.tools.mcp_session import ACCEPT_SECONDS, ASKS_PERSON, Place, Session, connect, hear_changes, says_forgotten
from dialogs.tools.tool import AsksPerson, Progress, Stopped
from dominds import waits
from dominds.redaction import redact
from dominds.unreachable import plain_reason

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 15  # bounds starting a program or connecting to a host, and the first exchange
LIST_SECONDS = 15
CALL_SECONDS = 60
RESTART_SECONDS = 5  # how long a lost server may take to come back
GRACE_SECONDS = 5  # how long after its own time-outs the loop may answer
MAX_TOOL_PAGES = 20
WITHOUT_WORDS = "Server returned an error response"  # the SDK's text for an HTTP error without an error of the protocol
SESSION_CODES = (-32000, -32001)  # of servers' own errors, such as a lost session

T = TypeVar("T")


def list_tools(server: Server, changed: Callable[[], object] = lambda: None) -> list[Tool]:
    """Return the server's tools, and have ``changed`` called when they are no longer valid. Raises ``McpFailed``."""
    mcp_config.begin_list(server.server_id)
    return _sessions.run(_sessions.list_tools(Place(server), changed), CONNECT_SECONDS + LIST_SECONDS)


def call_tool(
    place: Place,
    name: str,
    arguments: Mapping[str, Any],
    progress: Progress | None = None,
    seconds: float = CALL_SECONDS,
    *,
    repeatable: bool = False,
    answers: Mapping[str, str] | None = None,
) -> CallToolResult:
    """Run one tool. Raises ``McpFailed`` or ``Stopped``, after which it is unknown whether the call took effect, and
    ``AsksPerson`` if the server asks a question without an answer in ``answers``.

    The call runs again in a new session if the server no longer knows the old one, or if the connection was lost during
    a ``repeatable`` call.
    """
    progress = progress or Progress()
    asking = Asking(place.server.server_id, name, answers or {})
    work = _sessions.call_tool(place, asking, dict(arguments), progress, seconds, repeatable=repeatable)
    try:
        answer = _sessions.run(work, CONNECT_SECONDS + seconds, progress)
    except McpFailed:
        if asking.open is None:
            raise
    else:
        if asking.open is None:
            return answer
    raise AsksPerson(asking.open.text, asking.open.choices)  # the result of the cancelled call does not matter


def close() -> None:
    """End all sessions and the servers that they started."""
    _sessions.close()


class _Sessions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._open: dict[tuple[str, str], Session] = {}

    # From any thread

    def run(self, work: Coroutine[Any, Any, T], seconds: float, progress: Progress | None = None) -> T:
        try:
            waits.begin("a tool server")
        except BaseException:
            work.close()
            raise
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

    async def list_tools(self, place: Place, changed: Callable[[], object]) -> list[Tool]:
        async def ask(client: Client) -> list[Tool]:
            self._session(place).changed = changed
            tools: dict[str, Tool] = {}
            cursors: list[str | None] = [None]
            while len(cursors) <= MAX_TOOL_PAGES:
                try:
                    page = await client.list_tools(cursor=cursors[-1], cache_mode="refresh")
                except MCPError as error:
                    if not tools or error.code == CONNECTION_CLOSED:
                        raise
                    reason = f"the next page of the server's list failed: {error}"
                    break
                tools = {tool.name: tool for tool in page.tools} | tools
                if not page.next_cursor:
                    return list(tools.values())
                if page.next_cursor in cursors:
                    reason = "the server's list goes on with a page that it had before"
                    break
                cursors.append(page.next_cursor)
            else:
                reason = f"the server's list has more than {MAX_TOOL_PAGES} pages"
            mcp_config.leave_out(place.server.server_id, "any further one", reason)
            return list(tools.values())

        return await self._work(place, ask, LIST_SECONDS, repeatable=True)

    async def call_tool(
        self,
        place: Place,
        asking: Asking,
        arguments: dict[str, Any],
        watched: Progress,
        seconds: float,
        *,
        repeatable: bool,
    ) -> CallToolResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            """Show the message of a progress report, or its numbers if it has none."""
            watched.report(message or (f"{progress:g} / {total:g}" if total else f"{progress:g}"))

        async def call(client: Client) -> CallToolResult:
            return await client.call_tool(asking.tool, arguments, progress_callback=report)

        return await self._work(place, call, seconds, asking, repeatable=repeatable)

    async def _work(
        self,
        place: Place,
        work: Callable[[Client], Awaitable[T]],
        seconds: float,
        *asking: Asking,
        repeatable: bool,
    ) -> T:
        """Do one piece of work. If the session was lost, repeat the work in a new one, unless that might do it twice.

        Waits for a server that restarts.
        """
        try:
            return await self._work_once(place, work, seconds, *asking)
        except _SessionLost as lost:
            if not lost.undone and not repeatable:
                raise
        until = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                return await self._work_once(place, work, seconds, *asking)
            except _Unreachable:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(RESTART_SECONDS / 10)

    async def _work_once(
        self, place: Place, work: Callable[[Client], Awaitable[T]], seconds: float, *asking: Asking
    ) -> T:
        """Do one piece of work in the server's session.

        A broken session is not used again. A session whose server only refused the work stays, since the server may
        hold state in it.
        """
        session, server_id = self._session(place), place.server.server_id
        session.users += 1
        session.asking += asking
        try:
            client = await asyncio.shield(session.client)  # others may be waiting for it, too
            async with asyncio.timeout(seconds):
                return await work(client)
        except McpFailed:
            raise
        except TimeoutError:
            self._drop(session)
            raise McpFailed(f"The MCP server '{server_id}' did not answer within {seconds} seconds.") from None
        except Exception as error:
            reason = f"The MCP server '{server_id}' failed: {_reason(error, session)}"
            if session.too_much:
                self._drop(session)
                raise McpFailed(reason) from error
            is_forgotten = session.forgotten or _tells_forgotten(error)
            if is_forgotten or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED):
                self._drop(session)
                raise _SessionLost(reason, undone=is_forgotten) from error
            if not isinstance(error, MCPError | ValidationError):
                self._drop(session)
            raise McpFailed(reason) from error
        finally:
            session.users -= 1
            session.asking = [other for other in session.asking if other not in asking]
            session.rested_since = time.monotonic()
            session.close_when_idle()

    def _session(self, place: Place) -> Session:
        known = self._open.get(place.key)
        if known is not None and known.place == place and known.is_usable:
            return known
        if known is not None:  # the session broke, or the server's settings have changed
            self._drop(known)
        session = self._open[place.key] = Session(place, asyncio.get_running_loop().create_future())
        session.task = asyncio.create_task(self._live(session))
        return session

    async def _live(self, session: Session) -> None:
        """Open a session, provide its client, and close it when nobody needs it."""
        server_id = session.server.server_id
        try:
            async with asyncio.timeout(CONNECT_SECONDS) as opening, connect(session) as client:
                opening.reschedule(None)
                session.client.set_result(client)
                listening = asyncio.create_task(hear_changes(session, client))
                try:
                    await session.until_over()
                finally:
                    listening.cancel()
        except Exception as error:  # noqa: BLE001  whatever a transport raises ends this session and nothing else
            reason = _reason(error, session)
            if session.client.done():
                log.warning("mcp_session_ended", server=server_id, error=redact(reason))
            else:
                late = isinstance(error, TimeoutError)
                reason = f"no answer within {CONNECT_SECONDS} seconds" if late else reason
                session.client.set_exception(_Unreachable(f"The MCP server '{server_id}' cannot be reached: {reason}"))
                session.client.exception()  # marks the exception as retrieved, even if nobody waits for it
        finally:
            self._drop(session)

    def _drop(self, session: Session) -> None:
        session.dropped = True
        if self._open.get(session.place.key) is session:
            del self._open[session.place.key]
        session.close_when_idle()

    async def _close_all(self) -> None:
        sessions = list(self._open.values())
        for session in sessions:
            session.closing.set()
        await asyncio.gather(*(session.task for session in sessions if session.task), return_exceptions=True)


class _Unreachable(McpFailed):
    """Raised when no session could be opened, so that nothing was done."""


class _SessionLost(McpFailed):
    """Raised when the session is over. ``undone``: the server has not acted on the last request."""

    def __init__(self, reason: str, *, undone: bool) -> None:
        super().__init__(reason)
        self.undone = undone


def _tells_forgotten(error: Exception) -> bool:
    """Check whether a server refused a call because of its session, by an error of the protocol and not of HTTP. A
    tool's own failures have other codes.
    """
    return isinstance(error, MCPError) and error.code in SESSION_CODES and says_forgotten(str(error).encode())


def _reason(error: BaseException, session: Session) -> str:
    """Return the innermost reason, since task groups wrap each error in a group of one."""
    if session.too_much:
        return session.too_much
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if ASKS_PERSON in str(error):
        return (
            "it asks a person in the middle of the call, while it serves other calls, and so cannot get an answer. "
            "Ask them with ask_human, and call it again with what they say"
        )
    if isinstance(error, httpx2.ConnectTimeout):
        return f"it did not accept a connection within {ACCEPT_SECONDS:g} seconds"
    said = session.refusal if str(error) == WITHOUT_WORDS else str(error)
    return plain_reason(said) or type(error).__name__


_sessions = _Sessions()
atexit.register(close)
