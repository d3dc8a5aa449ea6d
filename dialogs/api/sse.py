"""A dialog's events and live text as server-sent events: an endless answer to one reader.

As with the page's socket, Redis only notifies, and every event is read from the database by the number of the last one
sent.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.http import StreamingHttpResponse

from dialogs.api.cursors import is_stale, standing_of
from dialogs.errors import RateLimited
from dialogs.live.db_threads import in_db_thread
from dialogs.live.feeds import Feed
from dialogs.live.hub import hub
from dialogs.models import Dialog
from dialogs.store import events

log = structlog.get_logger(__name__)

KEEP_ALIVE_SECONDS = 15
KEEP_ALIVE = b": keep-alive\n\n"
BATCH = 200
STREAMS_PER_PERSON = 200
RETRY_SECONDS = 3
_open: Counter[int] = Counter()


def write_event(content: Any, *, event: str = "", number: int | None = None) -> bytes:
    """Return one server-sent event."""
    lines = [f"event: {event}\n" if event else "", f"id: {number}\n" if number is not None else ""]
    return "".join(lines).encode() + b"data: " + orjson.dumps(content) + b"\n\n"


def stream_response(pieces: AsyncIterator[bytes]) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(pieces, content_type="text/event-stream")
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


class EventStream:
    """A stream of a dialog's events. As a ``hub.Listener`` it is woken on the loop, and then reads what is due."""

    language = ""

    def __init__(
        self, dialog_id: UUID, user_id: int, after: int, holds: Callable[[], bool], *, of: str | None = None
    ) -> None:
        self.user_id = user_id
        self._dialog_id, self._seq, self._holds = dialog_id, after, holds
        self._generation = of  # of the database in which ``after`` counts; None means unknown before the first read
        self._wake = asyncio.Event()
        self._behind = True
        self._live_text: list[dict[str, Any]] = []
        self._known = 0  # the newest generation whose beginning the reader has
        self._caught_up = False
        self._ended = False

    def on_poke(self, seq: int) -> None:
        if seq == 0 or seq > self._seq:
            self._behind = True
            self._wake.set()

    def on_live_text(self, frame: dict[str, Any]) -> None:
        if frame.get("reset"):
            self._live_text.clear()
        if self._caught_up and _says_something(frame):
            self._live_text.append(frame)
            self._behind = self._behind or frame["generation"] > self._known
            self._wake.set()

    def on_frame(self, frame: dict[str, Any]) -> None:
        if frame.get("recheck") or frame.get("logout"):
            self._behind = True
            self._wake.set()

    async def read(self) -> AsyncIterator[bytes]:
        """Yield events until the reader goes, or may no longer read."""
        if _open[self.user_id] >= STREAMS_PER_PERSON:
            raise RateLimited(f"You have {STREAMS_PER_PERSON} event streams open; close one first.", 30)
        _open[self.user_id] += 1
        try:
            yield f"retry: {RETRY_SECONDS * 1000}\n\n".encode()
            feed = await hub().join(self, self._dialog_id)
            assert feed is not None
            while True:
                async for piece in self._read_due(feed):
                    yield piece
                if self._ended:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), KEEP_ALIVE_SECONDS)
                if not self._wake.is_set():
                    self._behind = True  # a poke may have been lost, a key revoked
                    yield KEEP_ALIVE
                self._wake.clear()
        finally:
            _open[self.user_id] -= 1
            await hub().leave(self, self._dialog_id)

    async def _read_due(self, feed: Feed) -> AsyncIterator[bytes]:
        for piece in self._of_live_text(feed):  # the last words of an answer are sent before the event of its end
            yield piece
        while self._behind:
            self._behind = False
            # The start of a generation is an event that comes before its live text, so the next rows have it.
            begun = max((frame["generation"] for frame in self._live_text), default=0)
            try:
                rows = await in_db_thread(self._fetch)
            except (DatabaseError, TimeoutError) as error:
                log.warning("event_stream_waits", dialog_id=str(self._dialog_id), error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
                self._behind = True
                return
            for row in rows:
                if row["type"] == "generation":
                    self._known = max(self._known, int(row["data"]["id"]))
                    if row["data"].get("outcome") != "running":
                        feed.end(int(row["data"]["id"]))
                self._seq = row["seq"]
                yield write_event(row, event=row["type"], number=row["seq"])
            self._known = max(self._known, begun)
            self._behind = self._behind or bool(rows)
        if not self._caught_up:
            self._caught_up = True
            snapshot = feed.snapshot()
            if snapshot and _says_something(snapshot):
                self._live_text = [snapshot]
                self._known = max(self._known, snapshot["generation"])
            else:
                feed.load()
        for piece in self._of_live_text(feed):
            yield piece

    def _of_live_text(self, feed: Feed) -> list[bytes]:
        """Return the live text of generations whose start the reader has, as events, and keep the rest waiting."""
        ready = [frame for frame in self._live_text if frame["generation"] <= self._known]
        self._live_text = [frame for frame in self._live_text if frame["generation"] > self._known]
        return [piece for frame in ready if frame["generation"] > feed.ended for piece in _pieces(frame)]

    def _fetch(self) -> list[dict[str, Any]]:
        user = User.objects.filter(pk=self.user_id, is_active=True).first()
        standing = standing_of(Dialog.objects.for_user(user), self._dialog_id) if user and self._holds() else None
        if standing is None:
            self._ended = True
            return []
        newest, generation = standing
        stale = is_stale(self._seq, newest, self._generation, generation)
        self._generation = generation
        if stale:  # the reader gets everything again, from the first event
            self._seq = self._known = 0
            return [{"seq": 0, "type": "resync", "data": {"generation": generation}}]
        return events.after(self._dialog_id, self._seq, BATCH)


def _says_something(frame: dict[str, Any]) -> bool:
    return bool(frame["text"] or frame.get("reasoning"))


def _pieces(frame: dict[str, Any]) -> list[bytes]:
    """Return a frame as events: one with the model's thinking, and one with its words."""
    generation = frame["generation"]
    parts = (("reasoning", frame.get("reasoning_pos"), frame.get("reasoning")), ("draft", frame["pos"], frame["text"]))
    return [
        write_event({"generation": generation, "pos": position, "text": text}, event=name)
        for name, position, text in parts
        if text
    ]
