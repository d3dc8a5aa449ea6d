"""The live text of one dialog's running answer, shared by all its sockets in a web process."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol
from uuid import UUID

import structlog
from django.db.models import QuerySet
from redis.asyncio import Redis
from redis.exceptions import RedisError

from dialogs.live.db_threads import in_db_thread
from dialogs.models import Generation
from dialogs.pages.markdown import GrowingText
from dialogs.store import wakeups
from dialogs.store.wakeups import LIVE_TEXT_SECONDS, live_text_key
from dominds.budgets import TURN_CHARS
from dominds.db.prepared import Select

log = structlog.get_logger(__name__)

REST = "\n[The rest is shown when the answer is complete.]"
SHARED_SECONDS = 0.5  # how long a rendering is kept for pages that ask a little later
FINISH_SECONDS = 0.25  # how often live text is searched for finished blocks

_render_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="live-text")


class Listener(Protocol):
    """A socket, as feeds know it. Its methods are called on the event loop, and must not block."""

    user_id: int
    language: str  # the language of its rendered pieces

    def on_poke(self, seq: int) -> None:
        """Note that the dialog has events up to ``seq``; 0 says that some may have been missed."""

    def on_live_text(self, frame: dict[str, Any]) -> None: ...

    def on_frame(self, frame: dict[str, Any]) -> None:
        """Take a frame for the person behind the socket, or the newest line of a tool."""


class Rendering:
    """Events as pages show them, rendered once for all sockets that need the same at the same time."""

    def __init__(self) -> None:
        # A monotonic time: all events that were announced before it are included. It is infinite until the rendering
        # begins, since whatever is announced until then will be included.
        self.begun_at = math.inf
        self.started_generation = 0  # the newest generation whose start it includes
        self.frames: asyncio.Task[list[dict[str, Any]] | None]


class Feed:
    """A dialog as this process watches it: its sockets, and the live text that they share."""

    def __init__(self, dialog_id: UUID, redis: Redis) -> None:
        self.dialog_id = dialog_id
        self._redis = redis
        self.listeners: set[Listener] = set()
        self.generation = 0  # the generation that the live text belongs to; their ids only grow
        self.ended = 0  # the newest generation known to have ended
        self.live_text: GrowingText | None = None
        self.reasoning = ""  # the reasoning of the same answer
        self.reasoning_since = 0.0  # monotonic seconds, of its first word; without reasoning it means nothing
        self.tool_line: dict[str, Any] | None = None  # the newest; a dialog runs one tool at a time
        self.seq = 0
        self._renderings: dict[tuple[Any, ...], Rendering] = {}
        self._finishing: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None

    def receive(self, frame: dict[str, Any]) -> None:
        """Announce to the sockets that the dialog has events up to ``seq``."""
        self.seq = max(self.seq, int(frame["seq"]))
        for listener in tuple(self.listeners):
            listener.on_poke(self.seq)

    def rendering(
        self,
        key: tuple[Any, ...],
        announced_at: float,
        render: Callable[[Rendering], Coroutine[Any, Any, list[dict[str, Any]] | None]],
    ) -> Rendering:
        """Return a rendering with everything announced until ``announced_at``; sockets with the same key share one."""
        result = self._renderings.get(key)
        if result is None or result.begun_at < announced_at:
            result = self._renderings[key] = Rendering()
            result.frames = asyncio.create_task(render(result))
            result.frames.add_done_callback(partial(self._take_rendered, key, result))
        return result

    def _take_rendered(self, key: tuple[Any, ...], rendering: Rendering, frames: "asyncio.Task[Any]") -> None:
        failed = frames.cancelled() or frames.exception() is not None
        asyncio.get_running_loop().call_later(0 if failed else SHARED_SECONDS, self._forget, key, rendering)

    def _forget(self, key: tuple[Any, ...], rendering: Rendering) -> None:
        if self._renderings.get(key) is rendering:
            del self._renderings[key]

    def end(self, generation: int) -> None:
        """Drop the live text of a generation that has ended. Its turn replaces the text, if the answer was kept."""
        self.ended = max(self.ended, generation)
        if self.generation <= self.ended:
            self.live_text = None

    def snapshot(self) -> dict[str, Any] | None:
        """Return the live text from its beginning, for a socket that has none of it, or None if there is none."""
        if self.live_text is None:
            return None
        growing = self.live_text
        return {
            **self._frame(0, growing.text),
            "reset": True,
            "block": growing.blocks,
            "html": growing.html,
            "tail": growing.tail,
            **_reasoning_part(0, self.reasoning, self.reasoning_since),
        }

    def load(self) -> None:
        """Fetch the whole live text, for the first socket and after a gap."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load())

    def extend(self, generation: int, position: int, text: str, *, reasoning: bool = False) -> None:
        """Add a piece of the live text or of its reasoning."""
        if generation <= self.ended or generation < self.generation:
            return
        if generation > self.generation:
            self.generation, self.live_text, self.reasoning = generation, GrowingText(), ""
        known = 0 if self.live_text is None else len(self.reasoning if reasoning else self.live_text.text)
        if self.live_text is None or position > known:
            self.load()
            return
        added, position = text[known - position :], known
        if not added:
            return
        if reasoning:
            if not self.reasoning:
                self.reasoning_since = time.monotonic()
            self.reasoning += added
            thought = _reasoning_part(position, added, self.reasoning_since)
            self._send({**self._frame(len(self.live_text.text), ""), **thought})
            return
        self.live_text.text += added
        self._send(self._frame(position, added))
        if "\n" in added and (self._finishing is None or self._finishing.done()):
            self._finishing = asyncio.create_task(self._finish(self.live_text))

    def show_line(self, call_id: str, line: str) -> None:
        """Show the newest output or progress of a running tool."""
        self.tool_line = {"type": "tool_line", "call": call_id, "line": line}
        for listener in tuple(self.listeners):
            listener.on_frame(self.tool_line)

    async def _finish(self, growing: GrowingText) -> None:
        """Render finished blocks, away from the event loop."""
        await asyncio.sleep(FINISH_SECONDS)
        loop = asyncio.get_running_loop()
        chars, html = await loop.run_in_executor(_render_threads, growing.newly_finished)
        growing.finish(chars, html)
        if chars and growing is self.live_text:
            frame = self._frame(len(growing.text), "")
            self._send({**frame, "block": growing.blocks, "html": html, "tail": growing.tail})

    async def _load(self) -> None:
        try:
            generation = await in_db_thread(_running_replies.first, self.dialog_id)
            if not generation or generation <= self.ended:
                return
            async with self._redis.pipeline(transaction=False) as pipe:
                _ask_for(pipe, generation)
                text, reasoning, since = _answers(await pipe.execute())
        except (TimeoutError, RedisError, OSError) as error:
            log.warning("live_text_not_loaded", dialog_id=str(self.dialog_id), error=str(error))
            return
        shown = self.live_text if self.generation == generation else None
        current = len(shown.text) + len(self.reasoning) if shown else -1
        if generation < self.generation or generation <= self.ended or len(text) + len(reasoning) <= current:
            return
        growing = GrowingText(text)
        loop = asyncio.get_running_loop()
        growing.finish(*await loop.run_in_executor(_render_threads, growing.newly_finished))
        self.generation, self.live_text = generation, growing
        self.reasoning, self.reasoning_since = reasoning, since
        if snapshot := self.snapshot():
            self._send(snapshot)

    def _frame(self, position: int, text: str) -> dict[str, Any]:
        return {
            "type": "draft",
            "generation": self.generation,
            "pos": position,
            "end": position + len(text),
            "text": text,
        }

    def _send(self, frame: dict[str, Any]) -> None:
        for listener in tuple(self.listeners):
            listener.on_live_text(frame)


def for_page(frame: dict[str, Any]) -> dict[str, Any] | None:
    """Cut a frame of live text to the part that a page will show of its turn, or return None if nothing is left."""
    most, end, tail = TURN_CHARS.most, frame["end"], frame.get("tail")
    reasoning, reasoning_at = frame.get("reasoning") or "", frame.get("reasoning_pos") or 0
    if end <= most and reasoning_at + len(reasoning) <= most:
        return frame
    position = min(frame["pos"], most)
    cut = {**frame, "pos": position, "end": min(end, most), "text": frame["text"][: most - position]}
    if frame["text"] and frame["pos"] <= most < end:
        cut["text"] += REST
    if tail is not None and end > most:
        cut["tail"] = tail[: max(0, most - (end - len(tail)))] + REST
    if reasoning:
        cut |= {"reasoning": reasoning[: max(0, most - reasoning_at)], "reasoning_pos": min(reasoning_at, most)}
    return cut if cut["text"] or cut.get("reasoning") or tail is not None else None


@Select
def _running_replies(dialog_id: UUID) -> QuerySet[Generation, int]:
    running = Generation.objects.filter(dialog_id=dialog_id, outcome="running", purpose="reply")
    return running.order_by("pk").values_list("pk", flat=True)[:1]


def _reasoning_part(position: int, text: str, since: float) -> dict[str, Any]:
    """Return a frame's reasoning from a position on, and how long ago all of it began; ``since`` is monotonic."""
    return {"reasoning": text, "reasoning_pos": position, "reasoning_seconds": round(time.monotonic() - since, 1)}


def _ask_for(pipe: Any, generation: int) -> None:
    """Ask for a generation's live text, in one round trip."""
    keys = [live_text_key(generation), live_text_key(generation, reasoning=True)]
    pipe.mget(keys)
    for key in keys:
        pipe.pttl(key)


def _answers(answers: list[Any]) -> tuple[str, str, float]:
    """Return the text, the reasoning, and the monotonic time at which the reasoning, if there is any, began.

    A key that never expires holds no more than the newest piece of a text that Redis lost. Its worker writes it whole
    at its next beat.
    """
    raw, *left = answers
    text, reasoning = (
        (piece or b"").decode("utf-8", "ignore") if milliseconds > 0 else ""
        for piece, milliseconds in zip(raw, left, strict=True)
    )
    return text, reasoning, time.monotonic() - (LIVE_TEXT_SECONDS - left[1] / 1000)


def current_live_text(dialog_id: UUID) -> dict[str, Any] | None:
    """Return the live text from its beginning, for a page that polls, or None if there is none or Redis is down."""
    generation = _running_replies.first(dialog_id)
    if not generation:
        return None
    try:
        with wakeups.client().pipeline(transaction=False) as pipe:
            _ask_for(pipe, generation)
            text, reasoning, since = _answers(pipe.execute())
    except RedisError:
        return None
    if not (text or reasoning):
        return None
    frame = {"type": "draft", "generation": generation, "pos": 0, "end": len(text), "text": text, "reset": True}
    return for_page({**frame, "html": "", "tail": text, **_reasoning_part(0, reasoning, since)})
