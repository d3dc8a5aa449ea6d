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
from dialogs.live.feeds import Feed, Rendering, for_page
from dialogs.live.flow_control import FlowControl
from dialogs.live.frames import BATCH, Frame, badges_of, frames_after
from dialogs.live.hub import hub, session_mark
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
        self._sent_seq = _cursor(self.scope["query_string"])
        self._database_generation = _database_generation(self.scope["query_string"])
        self.language = _language(self.scope["query_string"])
        self._start()
        await self.accept()
        self._writer = asyncio.create_task(self._write())

    def _start(self) -> None:
        now = time.monotonic()
        self._wake = asyncio.Event()
        self._wake.set()
        self._may_have_missed = self.dialog_id is not None  # there may be events that nobody announced
        self._announced_seq = 0  # the newest event that was announced
        self._announced_at = now  # when that was, or when something else made a read necessary
        self._unsent: deque[dict[str, Any]] = deque()  # events that were read and not sent yet
        self._reading: asyncio.Task[None] | None = None
        self._is_current = False  # all events from before the opening have been sent
        self._live_text: deque[dict[str, Any]] = deque()
        self._live_text_lost = True  # the live text has to be sent from its beginning
        self._live_text_waits = asyncio.Event()  # set while live text waits for the start of its generation to be read
        self._started_generation = 0  # the newest generation whose start was sent
        self._ended_generation = 0  # the newest generation whose end was sent
        self._unannounced_generation = 0  # a generation whose live text came before its start
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
        self._may_have_missed = self._may_have_missed or seq == 0
        self._announced_seq = max(self._announced_seq, seq)
        self._announced_at = time.monotonic()
        if self._is_behind:
            self._wake.set()

    def on_live_text(self, frame: dict[str, Any]) -> None:
        if not self._is_current or (self._live_text_lost and not frame.get("reset")):
            return
        if frame.get("reset"):
            self._live_text.clear()
            self._live_text_lost = False
        self._live_text.append(frame)
        if len(self._live_text) > 200:
            self._live_text.clear()
            self._live_text_lost = True
        if len(self._live_text) == 1:
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
    @property
    def _is_behind(self) -> bool:
        return self._may_have_missed or self._announced_seq > self._sent_seq

    def _read_if_due(self, now: float) -> None:
        """Start a read beside the writing, since live text must not wait until events are rendered."""
        due = self._is_behind or now - self._session_at >= SESSION_SECONDS
        if due and self._reading is None:
            self._reading = asyncio.create_task(self._read_new())

    async def _read_new(self) -> None:
        try:
            await self._check_session()
            if self._is_behind and not self._close_code:
                await self._read_events()
        except Exception:  # an unavailable database must not cost the connection
            log.exception("socket_read_failed", dialog_id=str(self.dialog_id), user_id=self.user_id)
            self._may_have_missed = self.dialog_id is not None
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._reading = None
            self._wake.set()

    async def _read_events(self) -> None:
        feed = self._feed
        assert feed is not None
        if self._is_current and not self._unannounced_generation and self._started_generation <= self._ended_generation:
            self._live_text_waits.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_SECONDS):
                    await self._live_text_waits.wait()
        key = (self.user_id, self.language, self._sent_seq, self._database_generation)
        rendering = feed.rendering(key, self._announced_at, partial(self._render, feed))
        result = await asyncio.shield(rendering.frames)  # another page may wait for them when this one is gone
        if self._announced_at <= rendering.begun_at:
            self._may_have_missed, self._announced_seq, self._unannounced_generation = False, 0, 0
        if result is None:
            self._close_code = NOT_FOUND
            return
        self._unsent.extend(result)
        if len(result) < BATCH:
            self._unsent.append({"started_generation": rendering.started_generation})
        else:
            self._may_have_missed = True

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
                self._sent_seq,
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
                self._may_have_missed = self.dialog_id is not None
                await asyncio.sleep(RETRY_SECONDS)
        await self.close(self._close_code)

    async def _write_what_is_due(self) -> None:
        now = time.monotonic()
        if self._flow.is_slow(now):
            self._live_text.clear()
            self._live_text_lost = True
            if self._flow.is_dead(now):
                self._close_code = TRY_LATER
        else:
            badges, self._badges = self._badges, None
            if badges is not None:
                await self._send(badges)
            if self._feed is not None:
                await self._write_events(self._feed)
                await self._write_live_text()
                if self._tool_line and self._is_current and not self._is_behind and not self._unsent:
                    line, self._tool_line = self._tool_line, None
                    await self._send(line)
            self._read_if_due(now)
        await self._ping_if_due(now)

    async def _write_events(self, feed: Feed) -> None:
        while self._unsent:
            frame = self._unsent.popleft()
            if "started_generation" in frame:
                self._started_generation = max(self._started_generation, frame["started_generation"])
                self._is_current = True
                continue
            if self._flow.is_slow(time.monotonic()) and not await self._drain():
                self._unsent.clear()
                self._may_have_missed = True  # nothing is queued for a page that does not read: it is read again later
                return
            if frame["type"] == "generation":
                generation = int(frame["data"]["id"])
                self._started_generation = max(self._started_generation, generation)
                if frame["data"].get("outcome") != "running":
                    feed.end(generation)
                    self._ended_generation = max(self._ended_generation, generation)
            await self._send(frame)
            self._sent_seq = frame["seq"]

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
        """Send the live text, unless something else must go first; then this is called again.

        Live text waits for the start of its generation, and so for its message and for the end of the answer before.
        Otherwise the page would show it in their place, and then move it.
        """
        feed = self._feed
        if (
            feed is None
            or not self._is_current
            or self._unsent
            or self._close_code
            or self._flow.is_slow(time.monotonic())
        ):
            return
        if self._live_text_lost:
            self._live_text_lost = False
            self._live_text.clear()
            if snapshot := feed.snapshot():
                self._live_text.append(snapshot)
            else:
                feed.load()
        while self._live_text:
            generation = self._live_text[0]["generation"]
            if generation > max(self._started_generation, feed.ended):
                self._live_text_waits.set()
                if self._reading is None and generation != self._unannounced_generation:
                    self._unannounced_generation = generation
                    self._may_have_missed = True
                    self._announced_at = time.monotonic()
                    self._wake.set()
                return
            frame = self._live_text.popleft()
            if generation > feed.ended and (shown := for_page(frame)):
                await self._send(shown)

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
