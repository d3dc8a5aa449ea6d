"""Heartbeats, which every worker and sweeper writes to Redis every ten seconds.

A heartbeat's age follows from the time after which Redis drops it, so the clocks of two machines are never compared.
Nothing depends on heartbeats; they are for operators.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from django.conf import settings
from redis import Redis, RedisError

from dominds import waits

log = structlog.get_logger(__name__)

KEPT_SECONDS = 300  # a part is forgotten after so long without a heartbeat
LATE_SECONDS = 30  # three missed
_NAMES = "dominds:parts"
_TIMEOUT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last heartbeat of one part. ``busy`` and ``waiting`` count a worker's messages; sweepers have none."""

    name: str
    kind: str  # "worker" or "sweeper"
    age_seconds: float
    busy: int | None = None
    waiting: int | None = None
    unheard: int = 0  # a worker's messages to itself that did not arrive; see ``dominds.worker.canary``
    # Models that a worker does not call now, and why: see ``dominds.llm.circuit_breaker``.
    open_circuits: Sequence[str] = ()

    @property
    def is_late(self) -> bool:
        return self.age_seconds > LATE_SECONDS or self.unheard > 2


def part_name(kind: str) -> str:
    return f"{kind}@{socket.gethostname()}:{os.getpid()}"


def beat(kind: str, name: str, **content: Any) -> None:
    """Write a heartbeat. Never raises: a part must not fail because Redis is unavailable."""
    try:
        with _client() as client, client.pipeline() as pipe:
            pipe.sadd(_NAMES, name)
            pipe.set(_key(name), orjson.dumps({"kind": kind, **content}), ex=KEPT_SECONDS)
            pipe.execute()
    except RedisError as error:
        log.debug("heartbeat_lost", part=name, error=str(error))


def leave(name: str) -> None:
    """Delete the heartbeat of a part that was stopped on purpose, so that it does not count as late."""
    try:
        with _client() as client:
            client.delete(_key(name))
    except RedisError as error:
        log.debug("heartbeat_lost", part=name, error=str(error))


def heartbeats() -> list[Heartbeat]:
    """Return every part with a heartbeat in the last five minutes, by name. Raises ``RedisError`` without Redis."""
    with _client() as client:
        names = sorted(name.decode() for name in client.smembers(_NAMES))
        with client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.get(_key(name))
                pipe.pttl(_key(name))
            answers = pipe.execute() if names else []
        words = dict(zip(names, zip(answers[::2], answers[1::2], strict=True), strict=True))
        if silent := [name for name, (content, _) in words.items() if content is None]:
            client.srem(_NAMES, *silent)
    return [
        Heartbeat(name=name, age_seconds=max(0.0, KEPT_SECONDS - left / 1000), **_known_fields(orjson.loads(content)))
        for name, (content, left) in words.items()
        if content is not None
    ]


def _known_fields(content: dict[str, Any]) -> dict[str, Any]:
    """Drop fields that a newer version writes in the middle of an upgrade."""
    return {name: value for name, value in content.items() if name in Heartbeat.__slots__}


def queue_depth(queue: str) -> int:
    """Count the wake-ups that wait for a worker. Raises ``RedisError`` when Redis is unavailable."""
    with _client() as client:
        return int(client.llen(queue))


def _key(name: str) -> str:
    return f"dominds:part:{name}"


def _client() -> Redis:
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT_SECONDS,
        socket_connect_timeout=_TIMEOUT_SECONDS,
        socket_keepalive=True,
        socket_keepalive_options=waits.keepalive_options(),
    )
