"""The sockets of pages: one for each open page, which only receives.

A socket may miss any message of Redis and still end up right, because it reads from the database by the number of the
last event it sent. The page acknowledges by answering ``ping`` frames. For a page that is too slow nothing is queued;
its events are read again later.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast
from urllib.parse import parse_qs
from uuid import UUID

import orjson
import structlog
from asgiref.typing import WebSocketScope
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError

from dialogs.live.db_threads import in_db_thread
from dialogs.live.event_cursor import EventCursor
from dialogs.live.feeds import Feed, Rendering, for_page
from dialogs.live.flow_control import FlowControl
from dialogs.live.frames import BATCH, Frame, badges_of, frames_after
from dialogs.live.hub import hub, session_mark
from dialogs.live.live_queue import LiveQueue, State
from dialogs.live.socket_auth import may_see, person_of
from dialogs.pages.language import in_language, known_language

log = structlog.get_logger(__name__)

TICK_SECONDS = 2
SESSION_SECONDS = 60  # between checks of the session
DRAIN_SECONDS = 0.25  # how long rendered events wait for acknowledgements before they are dropped, to be read again
RETRY_SECONDS = 3
# A message, its claim and the start of its generation come within moments: one query and one rendering serve all three.
BATCH_SECONDS = 0.06

LOGGED_OUT, NOT_FOUND, TOO_MANY, TRY_LATER = 4401, 4404, 4429, 1013


class PageSocket(AsyncWebsocketConsumer):
    """A page's socket: ``/ws/dialogs/ID/?after=SEQ`` for events, live text and badges, ``/ws/me/`` for badges alone."""

    scope: WebSocketScope
    language = ""

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Dispatch as Channels does, without its check of the database connections at every acknowledgement."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    @property
    def _scope(self) -> dict[str, Any]:
        """Return the scope with the values that middlewares and the router added."""
        return cast(dict[str, Any], self.scope)

    async def connect(self) -> None:
        self.user_id = 0
        self.dialog_id: UUID | None = self._scope["url_route"]["kwargs"].get("dialog_id")
        self._feed: Feed | None = None
        self._admitted = False
        self._writer: asyncio.Task[None] | None = None
        try:
            self.user_id, refusal = await in_db_thread(_admission, self._session_key, self.dialog_id)
        except (DatabaseError, TimeoutError):
            refusal = TRY_LATER
        if refusal:
            await self.close(refusal)
            return
        self._hub = hub()
        if not self._hub.admit(self.user_id):
            await self.close(TOO_MANY)
            return
        self._admitted = True
        self._database_generation = _database_generation(self.scope["query_string"])
        self.language = _language(self.scope["query_string"])
        self._start()
        await self.accept()
        self._writer = asyncio.create_task(self._write())

    def _start(self) -> None:
        now = time.monotonic()
        self._wake = asyncio.Event()
        self._wake.set()
        self._events = EventCursor(_cursor(self.scope["query_string"]), now)
        self._unsent: deque[Frame] = deque()  # events that were read and not sent yet
        self._newest_start: int | None = None  # set by a read of all events: the newest generation that had started
        self._reading: asyncio.Task[None] | None = None
        self._live_text = LiveQueue()
        self._live_text_waits = asyncio.Event()  # set when live text needs events that gather before they are read
        self._badges: dict[str, Any] | None = None  # the newest badges, until they are sent
        self._tool_line: dict[str, Any] | None = None  # a tool's newest line, until the page has the call
        self._flow = FlowControl(now)
        self._session_at = now - random.random() * SESSION_SECONDS / 2  # pages that opened together check one by one
        self._close_code = 0  # set when the socket is to be closed

    # -- from the page -------------------------------------------------------------------------------------------------
    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        with suppress(ValueError, TypeError, KeyError):
            frame = orjson.loads(text_data or "")
            if frame["type"] == "ack" and self._writer is not None:
                self._flow.acknowledge(int(frame["n"]), time.monotonic())
                self._wake.set()

    async def disconnect(self, code: int) -> None:
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await self._writer
            if self._reading is not None:
                self._reading.cancel()
        if self._admitted:
            await self._hub.leave(self, self.dialog_id)
            self._hub.dismiss(self.user_id)

    # -- from the hub --------------------------------------------------------------------------------------------------
    def on_poke(self, seq: int) -> None:
        self._events.announce(seq, time.monotonic())
        if self._events.is_behind:
            self._wake.set()

    def on_live_text(self, frame: dict[str, Any]) -> None:
        if self._live_text.add(frame):
            self._hub.write_soon(self._write_live_text)

    def on_frame(self, frame: dict[str, Any]) -> None:
        if frame.get("logout") and frame["logout"] == session_mark(self._session_key):
            self._close_code = LOGGED_OUT
        if frame.get("recheck"):
            self._session_at = float("-inf")
        if frame.get("type") == "badges":
            self._badges = frame
        elif frame.get("type") == "tool_line":
            self._tool_line = frame
        self._wake.set()

    # -- reading from the database -------------------------------------------------------------------------------------
    def _read_if_due(self, now: float) -> None:
        """Start a read beside the writing, since live text must not wait until events are rendered."""
        lacks_events = self._feed is not None and self._events.is_behind
        if self._reading is None and (lacks_events or now - self._session_at >= SESSION_SECONDS):
            self._reading = asyncio.create_task(self._read_new())

    async def _read_new(self) -> None:
        try:
            await self._check_session()
            if self._feed is not None and self._events.is_behind and not self._close_code:
                await self._read_events(self._feed)
        except Exception:  # an unavailable database must not cost the connection
            log.exception("socket_read_failed", dialog_id=str(self.dialog_id), user_id=self.user_id)
            self._events.repeat()
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._reading = None
            self._wake.set()

    async def _read_events(self, feed: Feed) -> None:
        if self._may_gather(feed):
            self._live_text_waits.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_SECONDS):
                    await self._live_text_waits.wait()
        key = (self.user_id, self.language, self._events.sent, self._database_generation)
        rendering = feed.rendering(key, self._events.announced_at, partial(self._render, feed))
        result = await asyncio.shield(rendering.frames)  # another page may wait for them when this one is gone
        self._events.note_read(rendering.begun_at)
        if result is None:
            self._close_code = NOT_FOUND
            return
        self._unsent.extend(result)
        if len(result) < BATCH:
            self._newest_start = rendering.started_generation
        else:
            self._events.repeat()

    def _may_gather(self, feed: Feed) -> bool:
        """Check whether events may wait for others: the page is up to date, no answer runs, and no live text waits."""
        queue = self._live_text
        return queue.is_open and queue.started_generation <= feed.ended and not queue.waits(feed.ended)

    async def _render(self, feed: Feed, rendering: Rendering) -> list[Frame] | None:
        def begin() -> Callable[[], list[Frame] | None]:
            """Note when the read begins, since events that are announced from now on may be missing from it."""
            rendering.begun_at = time.monotonic()
            rendering.started_generation = feed.generation  # its live text is here, so its start is in the database
            return partial(
                in_language,
                self.language,
                frames_after,
                feed.dialog_id,
                self.user_id,
                self._events.sent,
                self._database_generation,
            )

        return await self._hub.reads.read(feed.dialog_id, self.user_id, begin)

    # -- writing to the page -------------------------------------------------------------------------------------------
    async def _write(self) -> None:
        """Subscribe, then send missed events and the live text, and then whatever comes."""
        self._feed = await self._hub.join(self, self.dialog_id)
        self._tool_line = self._feed.tool_line if self._feed else None
        self._hub.show_badges(self, badges_of)
        while not self._close_code:
            with suppress(TimeoutError):
                # Unlike wait_for, this makes no task for each frame of each socket.
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._write_what_is_due()
            except (asyncio.CancelledError, ConnectionError):
                raise
            except Exception:  # one bad frame must not cost the connection
                log.exception("socket_frame_failed", dialog_id=str(self.dialog_id), user_id=self.user_id)
                self._events.repeat()
                await asyncio.sleep(RETRY_SECONDS)
        await self.close(self._close_code)

    async def _write_what_is_due(self) -> None:
        now = time.monotonic()
        if self._flow.is_slow(now):
            self._live_text.interrupt()
            if self._flow.is_dead(now):
                self._close_code = TRY_LATER
        else:
            badges, self._badges = self._badges, None
            if badges is not None:
                await self._send(badges)
            if self._feed is not None:
                await self._write_events(self._feed)
                await self._write_live_text()
                await self._write_tool_line()
            self._read_if_due(now)
        await self._ping_if_due(now)

    async def _write_events(self, feed: Feed) -> None:
        while self._unsent:
            frame = self._unsent.popleft()
            if self._flow.is_slow(time.monotonic()) and not await self._drain():
                self._unsent.clear()
                self._newest_start = None
                self._events.repeat()  # nothing is queued for a page that does not read: it is read again later
                return
            if frame["type"] == "generation":
                generation = int(frame["data"]["id"])
                self._live_text.note_start(generation)
                if frame["data"].get("outcome") != "running":
                    feed.end(generation)
            await self._send(frame)
            self._events.sent = frame["seq"]
        if self._newest_start is not None:
            self._live_text.note_start(self._newest_start)
            self._live_text.open()
            self._newest_start = None

    async def _drain(self) -> bool:
        """Wait a moment for acknowledgements, and return whether more may be sent then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._flow.is_slow(time.monotonic()):
                    self._wake.clear()
                    await self._wake.wait()
        self._wake.set()  # whatever else woke it is still to be done
        return not self._flow.is_slow(time.monotonic())

    async def _write_live_text(self) -> None:
        """Send the live text, unless something else must go first; then this is called again."""
        feed, queue = self._feed, self._live_text
        if feed is None or not queue.is_open:
            return
        if self._unsent or self._close_code or self._flow.is_slow(time.monotonic()):
            return
        if queue.state is State.INTERRUPTED:
            snapshot = feed.snapshot()
            queue.restart(snapshot)
            if snapshot is None:
                feed.load()
        while frame := queue.next_frame(feed.ended):
            if shown := for_page(frame):
                await self._send(shown)
        if queue.waits(feed.ended):
            self._live_text_waits.set()
            if self._reading is None and not self._events.is_behind:  # its start is stored, and not announced yet
                self._events.announce(0, time.monotonic())
                self._wake.set()

    async def _write_tool_line(self) -> None:
        """Send a tool's newest line once the page has all events, and so the tool's call."""
        has_all = self._live_text.is_open and not self._events.is_behind and not self._unsent
        if self._tool_line and has_all:
            line, self._tool_line = self._tool_line, None
            await self._send(line)

    async def _send(self, frame: dict[str, Any]) -> None:
        text, now = orjson.dumps(frame).decode(), time.monotonic()
        self._flow.count(len(text), now)
        await self.base_send({"type": "websocket.send", "text": text})
        await self._ping_if_due(now)

    async def _ping_if_due(self, now: float) -> None:
        if self._flow.ping_is_due(now):
            self._flow.note_ping(now)
            await self.base_send({"type": "websocket.send", "text": f'{{"type":"ping","n":{self._flow.sent}}}'})

    # -- the session ---------------------------------------------------------------------------------------------------
    @property
    def _session_key(self) -> str:
        return str(self._scope["cookies"].get(settings.SESSION_COOKIE_NAME, ""))

    async def _check_session(self) -> None:
        now = time.monotonic()
        if now - self._session_at >= SESSION_SECONDS:
            self._session_at = now
            user_id, refusal = await in_db_thread(_admission, self._session_key, self.dialog_id)
            self._close_code = refusal if user_id == self.user_id else LOGGED_OUT


def _cursor(query: bytes) -> int:
    """Return the event number of ``after=``. Any other value means from the beginning."""
    value = parse_qs(query.decode("latin-1")).get("after", ["0"])[-1]
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0


def _database_generation(query: bytes) -> str | None:
    """Return the database's generation in which the cursor counts. Pages send it, and programs may leave it out."""
    return parse_qs(query.decode("latin-1"), keep_blank_values=True).get("of", [None])[-1]


def _language(query: bytes) -> str:
    """Return the language of the page that opened the socket; programs get English."""
    return known_language(parse_qs(query.decode("latin-1")).get("lang", [""])[-1].lower())


def _admission(session_key: str, dialog_id: UUID | None) -> tuple[int, int]:
    """Return the person's number, with the reason why they may not listen here, or 0 if they may."""
    person = person_of(session_key)
    if person is None:
        return 0, LOGGED_OUT
    return person.pk, 0 if dialog_id is None or may_see(person, dialog_id) else NOT_FOUND
