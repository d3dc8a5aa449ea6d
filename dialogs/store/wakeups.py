"""Announcements to browsers and workers that the database has something new. They may be lost, doubled or late without
harm.

Nothing here raises, or keeps its caller for longer than ``HEAD_START_SECONDS``.
"""

import functools
import math
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor, wait
from uuid import UUID, uuid4

import orjson
import redis
import structlog
from celery import current_app
from django.conf import settings
from django.db import transaction

from dominds import waits

log = structlog.get_logger(__name__)

# Tasks by name: their code lies in a layer above.
DRIVE = "dialogs.drive_dialog"
DELIVER = "dialogs.deliver_notice"
LIVE_TEXT_SECONDS = 3600
LIVE_TEXT_CHANNEL = "dominds:drafts"  # frames of all dialogs; a web process passes on those of its sockets
STEP_SECONDS = 0.03  # how long the poke of a step waits for others to be merged with
_wakes = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wake")
MAX_WAITING = 10_000
# How long a caller waits for the sending thread, which mostly suffices. Otherwise both compete for the interpreter.
HEAD_START_SECONDS = 0.005

Poke = tuple[int, bytes]  # the number of the newest event, and what is published
BADGES: Poke = (0, b'{"badges": true}')


def dialog_channel(dialog_id: UUID | str) -> str:
    return f"dominds:dialog:{dialog_id}"


def user_channel(user_id: int) -> str:
    return f"dominds:user:{user_id}"


def live_text_key(generation_id: int, *, reasoning: bool = False) -> str:
    return f"dominds:draft:{generation_id}{':reasoning' if reasoning else ''}"


@functools.cache
def client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=2,
        socket_connect_timeout=1,
        socket_keepalive=True,
        socket_keepalive_options=waits.keepalive_options(),
        health_check_interval=15,
    )


def poke_dialog(dialog_id: UUID, seq: int, *, is_step: bool) -> None:
    """Announce after the commit that the dialog has events up to ``seq``. The poke of a step waits a little, since
    others mostly follow and replace it.
    """
    poke = (seq, orjson.dumps({"seq": seq}))
    seconds = STEP_SECONDS if is_step else 0
    transaction.on_commit(lambda: _publisher.add(dialog_channel(dialog_id), poke, seconds), robust=True)


def poke_user(user_id: int) -> None:
    """Announce after the commit that the person's badges have changed: open questions, or states of dialogs."""
    transaction.on_commit(lambda: _publisher.add(user_channel(user_id), BADGES), robust=True)


def wake(dialog_id: UUID) -> None:
    """Have a worker drive the dialog after the commit. The sweeper repeats what is lost here."""
    transaction.on_commit(lambda: _enqueue_soon(DRIVE, str(dialog_id)), robust=True)


def deliver(delivery_id: int) -> None:
    """Have a worker send a notice after the commit. The sweeper repeats what is lost here."""
    transaction.on_commit(lambda: _enqueue_soon(DELIVER, delivery_id), robust=True)


def _enqueue_soon(task: str, row_id: str | int) -> None:
    if _wakes._work_queue.qsize() < MAX_WAITING:
        wait([_wakes.submit(_enqueue, task, row_id)], HEAD_START_SECONDS)


def _enqueue(task: str, row_id: str | int) -> None:
    try:
        _send(task, row_id)
    except Exception as error:  # noqa: BLE001  any broker failure: the sweeper sends it again within seconds
        log.warning("wake_lost", task=task, row_id=row_id, error=str(error))


def _send(task: str, row_id: str | int) -> None:
    """Put the task into the workers' queue, in Celery's message protocol and kombu's form for Redis.

    The layers of both take 0.25 ms of CPU more, which is twice as long as the command itself.
    """
    task_id, args = str(uuid4()), (row_id,)
    queue = current_app.conf.task_default_queue
    message = {
        "body": b64encode(orjson.dumps((args, {}, None))).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {
            "lang": "py",
            "task": task,
            "id": task_id,
            "root_id": task_id,
            "parent_id": None,
            "group": None,
            "argsrepr": repr(args),  # for people who inspect the queue
        },
        "properties": {
            "correlation_id": task_id,
            "delivery_tag": task_id,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "body_encoding": "base64",
            "priority": 0,
        },
    }
    client().lpush(queue, orjson.dumps(message))


class _Publisher:
    """A thread of the process that publishes the newest poke of each channel, all together as soon as one is due.

    The newest poke is the one with the highest number, since two threads may come here in another order than they
    committed.
    """

    def __init__(self) -> None:
        self._pokes: dict[str, Poke] = {}
        self._due = math.inf  # monotonic seconds
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, channel: str, poke: Poke, within_seconds: float = 0) -> None:
        due = time.monotonic() + within_seconds
        with self._changed:
            self._pokes[channel] = max(poke, self._pokes.get(channel, poke))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="pokes", daemon=True)
                self._thread.start()
            if due < self._due:
                self._due = due
                self._changed.notify()

    def _run(self) -> None:
        while True:
            _publish(self._next())

    def _next(self) -> dict[str, Poke]:
        with self._changed:
            while (seconds := self._due - time.monotonic()) > 0:
                self._changed.wait(seconds if seconds < threading.TIMEOUT_MAX else None)
            pokes, self._pokes, self._due = self._pokes, {}, math.inf
            return pokes


def _publish(pokes: dict[str, Poke]) -> None:
    try:
        with client().pipeline(transaction=False) as pipe:
            for channel, (_, message) in pokes.items():
                pipe.publish(channel, message)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("pokes_lost", channels=len(pokes), error=str(error))


_publisher = _Publisher()
