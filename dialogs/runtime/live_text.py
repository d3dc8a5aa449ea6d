"""The text of running generations, in Redis only: it may vanish with its attempt, and the commit replaces it.

One thread of a process writes for all its generations: at each beat one pipeline and one message, however many there are.
"""

import threading
import time
from collections.abc import Collection
from uuid import UUID

import orjson
import redis
import structlog

from dialogs.store.wakeups import DRAFT_SECONDS, DRAFTS_CHANNEL, client, draft_key

log = structlog.get_logger(__name__)

BEAT_SECONDS = 0.04
BEAT_SECONDS_PER_DRAFT = 0.0002  # a frame costs the same whatever its length: with many answers at once, longer ones
LONGEST_BEAT_SECONDS = 0.12
LOST = -1  # as a draft's number of losses: write it whole at the next beat
LAST_WORDS_SECONDS = 3  # how long an ended answer waits for them to be written; Redis' own time-outs are shorter


class Draft:
    """The deltas of one generation. Redis being away costs the live view, never the answer."""

    def __init__(self, dialog_id: UUID, generation_id: int) -> None:
        self.dialog = str(dialog_id)
        self.generation = generation_id
        self.parts: list[str] = []  # all of them: what Redis lost is written again
        self.is_waiting = self.is_over = False
        self.tried = 0  # parts that were given to Redis, whether or not it took them
        self.written = 0  # parts that it took
        self.position = 0  # characters that it took
        self.bytes = 0  # what its text should have in Redis
        self.losses = _writer.losses

    def write(self, text: str) -> None:
        self.parts.append(text)
        if not self.is_waiting:
            _writer.add(self)

    def flush(self) -> None:
        """At the answer's end: readers hear its last words before its turn replaces them."""
        self.is_over = True
        if self.tried < len(self.parts):
            _writer.wait_for(self)


class Writer:
    """The thread that writes drafts: all that grew at each beat, and at once those that begin or end."""

    def __init__(self) -> None:
        self.losses = 0  # how often Redis was away: it may have come back without anything
        self._is_lost = False
        self._waiting: set[Draft] = set()
        self._urgent: set[Draft] = set()
        self._lock = threading.Lock()
        self._due = threading.Condition(self._lock)
        self._done = threading.Condition(self._lock)
        self._next_beat = 0.0  # monotonic seconds
        self._thread: threading.Thread | None = None

    def add(self, draft: Draft) -> None:
        with self._lock:
            draft.is_waiting = True
            if draft.position == 0 and not self._is_lost:
                self._urgent.add(draft)
            self._waiting.add(draft)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="drafts", daemon=True)
                self._thread.start()
            if len(self._waiting) == 1 or self._urgent:
                self._due.notify()

    def wait_for(self, draft: Draft) -> None:
        with self._lock:
            if draft.is_waiting:
                self._urgent.add(draft)
                self._due.notify()
            self._done.wait_for(lambda: draft.tried >= len(draft.parts), LAST_WORDS_SECONDS)

    def _run(self) -> None:
        while True:
            self._write(self._next())
            with self._lock:
                self._done.notify_all()

    def _next(self) -> Collection[Draft]:
        with self._lock:
            while not self._urgent and (not self._waiting or time.monotonic() < self._next_beat):
                self._due.wait(self._next_beat - time.monotonic() if self._waiting else None)
            if time.monotonic() < self._next_beat:
                drafts, self._urgent = self._urgent, set()
                self._waiting -= drafts
            else:
                drafts, self._waiting, self._urgent = self._waiting, set(), set()
                beat = min(LONGEST_BEAT_SECONDS, BEAT_SECONDS + BEAT_SECONDS_PER_DRAFT * len(drafts))
                self._next_beat = time.monotonic() + beat
            for draft in drafts:
                draft.is_waiting = False  # before its parts are read: one that comes now adds it again
            return drafts

    def _write(self, drafts: Collection[Draft]) -> None:
        losses = self.losses
        frames, took = [], []
        try:
            with client().pipeline(transaction=False) as pipe:
                for draft in drafts:
                    parts = len(draft.parts)
                    fresh = _text(draft.parts[draft.written : parts])
                    if draft.position == 0 or draft.losses != losses:
                        pipe.set(draft_key(draft.generation), _text(draft.parts[:parts]), ex=DRAFT_SECONDS)
                    else:
                        pipe.append(draft_key(draft.generation), fresh)
                    draft.tried = parts
                    frames.append(
                        {"dialog": draft.dialog, "generation": draft.generation, "pos": draft.position, "text": fresh}
                    )
                    took.append((draft, parts, fresh))
                pipe.publish(DRAFTS_CHANNEL, orjson.dumps(frames))
                *lengths, _ = pipe.execute()
        except redis.RedisError as error:
            self._lost(drafts, error)
            return
        self._is_lost = False
        for (draft, parts, fresh), length in zip(took, lengths, strict=True):
            draft.written, draft.losses = parts, losses
            draft.position += len(fresh)
            draft.bytes += len(fresh.encode())
            if length not in (draft.bytes, True):  # True: it was set whole
                draft.losses = LOST  # silently: its key was dropped, or Redis was empty when redis-py reconnected
                self.add(draft)

    def _lost(self, drafts: Collection[Draft], error: redis.RedisError) -> None:
        """Try again at the next beat, with the whole text: readers know by the position what they have of it."""
        if not self._is_lost:
            log.warning("drafts_lost", generations=len(drafts), error=str(error))
        self._is_lost = True
        self.losses += 1
        for draft in drafts:
            if not draft.is_over:
                self.add(draft)


def _text(parts: list[str]) -> str:
    return "".join(parts).encode("utf-8", "replace").decode()  # models do send half surrogate pairs


_writer = Writer()
