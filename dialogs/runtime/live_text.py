"""Live text of running generations. It is in Redis alone: it may vanish with its attempt, and the commit replaces it.

A text expires ``LIVE_TEXT_SECONDS`` after its first word, so the time that it has left tells when that was.

The newest line of running tools is published as well, and stored nowhere. One thread of a process writes for all its
generations: at each beat one pipeline and one message, however many generations there are.
"""

import re
import threading
import time
from collections.abc import Collection
from uuid import UUID

import orjson
import redis
import structlog

from dialogs.store.text import storable
from dialogs.store.wakeups import LIVE_TEXT_CHANNEL, LIVE_TEXT_SECONDS, client, live_text_key
from dominds.redaction import redact

log = structlog.get_logger(__name__)

BEAT_SECONDS = 0.04
BEAT_SECONDS_PER_TEXT = 0.0002  # many answers get fewer, longer frames, since a frame of any length costs the same
LONGEST_BEAT_SECONDS = 0.12
LOST = -1  # as ``LiveText.losses``: Redis lost this text, which is written whole at the next beat
CLOSING_SECONDS = 3  # how long an ended answer waits for its text to be written; Redis' own time-outs are shorter


class LiveText:
    """The growing text of one generation's answer or reasoning. Without Redis only the live view is lost."""

    def __init__(
        self, dialog_id: UUID, generation_id: int, *, reasoning: bool = False, after: "LiveText | None" = None
    ) -> None:
        self.dialog = str(dialog_id)
        self.generation = generation_id
        self.is_reasoning = reasoning
        self.after = after  # the text that readers must have before this one
        self.key = live_text_key(generation_id, reasoning=reasoning)
        self.parts: list[str] = []  # kept whole, because a text that Redis lost is written again
        self.begun_at = 0.0  # monotonic seconds, of the first part
        self.is_waiting = self.is_over = False
        self.tried = 0  # parts that were given to Redis, whether or not it took them
        self.written = 0  # parts that it took
        self.position = 0  # characters that it took
        self.bytes = 0  # the length that its text should have in Redis
        # The writer's losses at the last write. If it has had more since, Redis may have lost the text.
        self.losses = _writer.losses

    def write(self, text: str) -> None:
        self.begun_at = self.begun_at or time.monotonic()
        self.parts.append(text)
        if not self.is_waiting:
            _writer.add(self)

    @property
    def milliseconds_left(self) -> int:
        return max(1, round((self.begun_at + LIVE_TEXT_SECONDS - time.monotonic()) * 1000))

    def flush(self) -> None:
        """Write the end of an answer, so that readers get its last words before its turn replaces them."""
        self.is_over = True
        if self.tried < len(self.parts):
            _writer.wait_for(self)


class LiveAnswer:
    """A running answer as its readers see it: its text, and separately its reasoning."""

    def __init__(self, dialog_id: UUID, generation_id: int) -> None:
        self.reasoning = LiveText(dialog_id, generation_id, reasoning=True)
        self.text = LiveText(dialog_id, generation_id, after=self.reasoning)

    def flush(self) -> None:
        self.reasoning.flush()
        self.text.flush()


class Writer:
    """A thread that writes live texts: at each beat all that have grown, and at once those that begin or end."""

    def __init__(self) -> None:
        self.losses = 0  # how often Redis was unavailable; it may have come back empty
        self._is_lost = False
        self._waiting: set[LiveText] = set()
        self._urgent: set[LiveText] = set()
        self._lock = threading.Lock()
        self._due = threading.Condition(self._lock)
        self._done = threading.Condition(self._lock)
        self._next_beat = 0.0  # monotonic seconds
        self._thread: threading.Thread | None = None

    def add(self, text: LiveText) -> None:
        with self._lock:
            text.is_waiting = True
            if text.position == 0 and not self._is_lost:
                self._urgent.add(text)
                if text.after and text.after.is_waiting:
                    self._urgent.add(text.after)
            self._waiting.add(text)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="live-text", daemon=True)
                self._thread.start()
            if len(self._waiting) == 1 or self._urgent:
                self._due.notify()

    def wait_for(self, text: LiveText) -> None:
        with self._lock:
            if text.is_waiting:
                self._urgent.add(text)
                self._due.notify()
            self._done.wait_for(lambda: text.tried >= len(text.parts), CLOSING_SECONDS)

    def _run(self) -> None:
        while True:
            self._write(self._next())
            with self._lock:
                self._done.notify_all()

    def _next(self) -> Collection[LiveText]:
        with self._lock:
            while not self._urgent and (not self._waiting or time.monotonic() < self._next_beat):
                self._due.wait(self._next_beat - time.monotonic() if self._waiting else None)
            if time.monotonic() < self._next_beat:
                texts, self._urgent = self._urgent, set()
                self._waiting -= texts
            else:
                texts, self._waiting, self._urgent = self._waiting, set(), set()
                beat = min(LONGEST_BEAT_SECONDS, BEAT_SECONDS + BEAT_SECONDS_PER_TEXT * len(texts))
                self._next_beat = time.monotonic() + beat
            for text in texts:
                text.is_waiting = False  # set before its parts are read, so that a new part adds it again
            return texts

    def _write(self, texts: Collection[LiveText]) -> None:
        losses = self.losses
        frames, took = [], []
        try:
            with client().pipeline(transaction=False) as pipe:
                for text in sorted(texts, key=lambda text: not text.is_reasoning):
                    parts = len(text.parts)
                    fresh = storable("".join(text.parts[text.written : parts]))
                    if text.position == 0 or text.losses != losses:
                        pipe.set(text.key, storable("".join(text.parts[:parts])), px=text.milliseconds_left)
                    else:
                        pipe.append(text.key, fresh)
                    text.tried = parts
                    frames.append(
                        {
                            "dialog": text.dialog,
                            "generation": text.generation,
                            "pos": text.position,
                            "text": fresh,
                            "reasoning": text.is_reasoning,
                        }
                    )
                    took.append((text, parts, fresh))
                pipe.publish(LIVE_TEXT_CHANNEL, orjson.dumps(frames))
                *lengths, _ = pipe.execute()
        except redis.RedisError as error:
            self._try_again(texts, error)
            return
        self._is_lost = False
        for (text, parts, fresh), length in zip(took, lengths, strict=True):
            text.written, text.losses = parts, losses
            text.position += len(fresh)
            text.bytes += len(fresh.encode())
            if length not in (text.bytes, True):  # True is the answer to ``set``
                text.losses = LOST  # without an error: its key was evicted, or redis-py reconnected to an empty Redis
                self.add(text)

    def _try_again(self, texts: Collection[LiveText], error: redis.RedisError) -> None:
        """Try again at the next beat, with the whole text. Readers know by the position how much of it they have."""
        if not self._is_lost:
            log.warning("drafts_lost", generations=len(texts), error=str(error))
        self._is_lost = True
        self.losses += 1
        for text in texts:
            if not text.is_over:
                self.add(text)


_writer = Writer()


# -- Running tools -----------------------------------------------------------------------------------------------------

LINE_CHARS = 200
LINE_SECONDS = 0.25  # between two messages with lines; each has only the newest line of a call
READ_CHARS = 2_000  # the part of a line in which secrets are looked for
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")  # escape sequences: colours and movements of the cursor


def show_line(dialog_id: UUID, call_id: str, text: str) -> None:
    """Have a thread publish the last line of ``text``, without secrets, for the dialog's pages."""
    _lines.add(call_id, {"dialog": str(dialog_id), "call": call_id, "line": line_of(text)})


def line_of(text: str) -> str:
    """Return the last line that is not blank, in the form in which a page can show it."""
    lines = [line for line in _TERMINAL.sub("", text[-10 * READ_CHARS :]).splitlines() if line.strip()]
    line = " ".join(lines[-1][:READ_CHARS].split()) if lines else ""
    return storable(redact(line))[:LINE_CHARS]


class _Lines:
    """A thread that publishes the newest line of each call, and of all calls together at most four times a second."""

    def __init__(self) -> None:
        self._newest: dict[str, dict[str, str]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, call_id: str, frame: dict[str, str]) -> None:
        with self._changed:
            self._newest[call_id] = frame
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="tool-lines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest)
                frames, self._newest = list(self._newest.values()), {}
            try:
                client().publish(LIVE_TEXT_CHANNEL, orjson.dumps(frames))
            except redis.RedisError as error:
                log.warning("tool_lines_lost", calls=len(frames), error=str(error))
            time.sleep(LINE_SECONDS)


_lines = _Lines()
