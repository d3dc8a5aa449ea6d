"""The text of a running generation, in Redis only: it may vanish with its attempt, and the commit replaces it."""

import time
from uuid import UUID

import orjson
import redis
import structlog

from dialogs.poke import DRAFT_SECONDS, client, dialog_channel, draft_key

log = structlog.get_logger(__name__)

FLUSH_SECONDS = 0.08


class Draft:
    """Coalesces the deltas of one generation. Redis being away costs the live view, never the answer.

    Redis may lose the text in the middle of an answer: restarted empty, full, away for one flush. The length that it
    reports after each piece shows it, and then it is told the whole text again.
    """

    def __init__(self, dialog_id: UUID, generation_id: int) -> None:
        self._channel = dialog_channel(dialog_id)
        self._generation = generation_id
        self._key = draft_key(generation_id)
        self._waiting: list[str] = []
        self._told: list[str] = []
        self._position = 0  # in characters
        self._bytes = 0
        self._flushed_at = 0.0

    def write(self, text: str) -> None:
        self._waiting.append(text)
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        text = "".join(self._waiting).encode("utf-8", "replace").decode()  # models do send half surrogate pairs
        if not text:
            return
        self._told.append(text)
        self._bytes += len(text.encode())
        frame = orjson.dumps({"generation": self._generation, "pos": self._position, "text": text})
        try:
            with client().pipeline(transaction=False) as pipe:
                pipe.append(self._key, text)
                if self._position == 0:
                    pipe.expire(self._key, DRAFT_SECONDS)
                pipe.publish(self._channel, frame)
                length, *_ = pipe.execute()
            if length != self._bytes:
                client().set(self._key, "".join(self._told), ex=DRAFT_SECONDS)
        except redis.RedisError as error:
            log.warning("draft_lost", generation=self._generation, error=str(error))
        self._position += len(text)
        self._waiting.clear()
        self._flushed_at = time.monotonic()
