"""Tells browsers and workers to look at the database. May be lost, doubled or late without harm; never raises, never
blocks the caller for longer than Redis' short time-outs."""

import functools
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import orjson
import redis
import structlog
from django.conf import settings
from django.db import transaction

log = structlog.get_logger(__name__)

DRAFT_SECONDS = 3600
DRAFTS_CHANNEL = "dominds:drafts"  # of all dialogs, in lists: a web process takes what it has sockets for
_background = ThreadPoolExecutor(max_workers=2, thread_name_prefix="poke")
MAX_WAITING = 10_000


def dialog_channel(dialog_id: UUID | str) -> str:
    return f"dominds:dialog:{dialog_id}"


def user_channel(user_id: int) -> str:
    return f"dominds:user:{user_id}"


def draft_key(generation_id: int) -> str:
    return f"dominds:draft:{generation_id}"


@functools.cache
def client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=1, socket_keepalive=True, health_check_interval=15
    )


def poke_dialog(dialog_id: UUID, seq: int) -> None:
    """After commit: the dialog has events up to ``seq``."""
    message = orjson.dumps({"seq": seq})
    transaction.on_commit(lambda: _later(_publish, dialog_channel(dialog_id), message), robust=True)


def poke_user(user_id: int) -> None:
    """After commit: the person's badges (open questions, dialog states) changed."""
    transaction.on_commit(lambda: _later(_publish, user_channel(user_id), b'{"badges": true}'), robust=True)


def wake(dialog_id: UUID) -> None:
    """After commit: a worker should drive the dialog. The sweeper repeats what is lost here."""
    transaction.on_commit(lambda: _later(_enqueue, str(dialog_id)), robust=True)


def _later(function: object, *arguments: object) -> None:
    if _background._work_queue.qsize() < MAX_WAITING:
        _background.submit(function, *arguments)  # type: ignore[arg-type]


def _publish(channel: str, message: bytes) -> None:
    try:
        client().publish(channel, message)
    except redis.RedisError as error:
        log.warning("poke_lost", channel=channel, error=str(error))


def _enqueue(dialog_id: str) -> None:
    from dialogs.tasks import drive_dialog

    try:
        drive_dialog.delay(dialog_id)
    except Exception as error:  # noqa: BLE001  any broker failure: the sweeper wakes the dialog within seconds
        log.warning("wake_lost", dialog_id=dialog_id, error=str(error))
