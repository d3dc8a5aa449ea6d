"""Heartbeats, which every worker and sweeper writes to Redis every ten seconds.

A heartbeat's age is computed from its remaining lifetime in Redis, so that the clocks of two machines are never
compared. Heartbeats are only shown to operators, and nothing else depends on them.
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

KEPT_SECONDS = 300  # a part without a heartbeat for so long is forgotten
LATE_SECONDS = 30  # three missed heartbeats
_NAMES = "dominds:parts"
_TIMEOUT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last heartbeat of one part. ``busy`` and ``waiting`` count a worker's messages; sweepers have None."""

    name: str
    kind: str  # "worker" or "sweeper"
    age_seconds: float
    busy: int | None = None
    waiting: int | None = None
    unheard: int = 0  # a worker's messages to itself that did not arrive; see ``dominds.worker.canary``
    # The models that a worker does not call for now, with the reasons: see ``dominds.llm.circuit_breaker``.
    open_circuits: Sequence[str] = ()

    @property
    def is_late(self) -> bool:
        return self.age_seconds > LATE_SECONDS or self.unheard > 2


def part_name(kind: str) -> str:
    return f"{kind}@{socket.gethostname()}:{os.getpid()}"


def beat(kind: str, name: str, **content: Any) -> None:
    """Write a heartbeat. Nothing is raised if Redis is unavailable, since the part must not fail."""
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
    """Return the heartbeats of the last five minutes, by name of the part. Raises ``RedisError``."""
    with _client() as client:
        names = sorted(name.decode() for name in client.smembers(_NAMES))
        with client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.get(_key(name))
                pipe.pttl(_key(name))
            answers = pipe.execute() if names else []
        entries = dict(zip(names, zip(answers[::2], answers[1::2], strict=True), strict=True))
        if silent := [name for name, (content, _) in entries.items() if content is None]:
            client.srem(_NAMES, *silent)
    return [
        Heartbeat(name=name, age_seconds=max(0.0, KEPT_SECONDS - left / 1000), **_known_fields(orjson.loads(content)))
        for name, (content, left) in entries.items()
        if content is not None
    ]


def _known_fields(content: dict[str, Any]) -> dict[str, Any]:
    """Drop unknown fields: in the middle of an upgrade, parts of a newer version may write more."""
    return {name: value for name, value in content.items() if name in Heartbeat.__slots__}


def queue_depth(queue: str) -> int:
    """Count the wake-ups that wait for a worker. Raises ``RedisError``."""
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
