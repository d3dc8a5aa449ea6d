"""One Redis subscription for each web process, shared by all its sockets.

Frames arrive at most once, and only announce events: a listener that may have missed some reads the database again.
Everything here runs on one event loop and holds no lock; blocking work runs in the threads of ``db_threads``.
"""

import asyncio
import hashlib
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import orjson
import redis.asyncio
import structlog
from django.conf import settings
from redis.exceptions import RedisError

from dialogs.live.badges import Person, ReadBadges
from dialogs.live.db_threads import in_db_thread
from dialogs.live.fair_reads import FairReads
from dialogs.live.feeds import Feed, Listener
from dialogs.models import Dialog
from dialogs.store.wakeups import LIVE_TEXT_CHANNEL, dialog_channel, user_channel
from dominds import waits

log = structlog.get_logger(__name__)

QUIET_SECONDS = 10  # without a message; then Redis is pinged
POLL_SECONDS = 15  # how often the database is polled, in case a frame was lost
REFRESHES_PER_SECOND = 100  # dialogs that are read again after a lost connection
SOCKETS_PER_PERSON = 20
SOCKETS_PER_PROCESS = 10_000


def session_mark(session_key: str) -> str:
    """Return a name for a session that does not reveal its key, for frames to a person's channel."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:24]


def _last_seqs(dialog_ids: list[UUID]) -> dict[UUID, int]:
    return dict(Dialog.objects.filter(pk__in=dialog_ids).values_list("pk", "last_event_seq"))


class Hub:
    """The Redis connection of all sockets of the process, and the listeners of each channel."""

    def __init__(self) -> None:
        self.redis = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=3,
            socket_connect_timeout=2,
            socket_keepalive=True,
            socket_keepalive_options=waits.keepalive_options(),
        )
        self._feeds: dict[str, Feed] = {}
        self._people: dict[str, Person] = {}
        self._sockets: defaultdict[int, int] = defaultdict(int)
        self.reads = FairReads()
        self._pubsub: Any = None
        self._subscribed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._writes: list[Callable[[], Awaitable[None]]] = []
        self._to_write = asyncio.Event()

    # -- sockets -------------------------------------------------------------------------------------------------------
    def admit(self, user_id: int) -> bool:
        """Count a new socket, or return ``False`` if the person or the process has too many."""
        if self._sockets[user_id] >= SOCKETS_PER_PERSON or sum(self._sockets.values()) >= SOCKETS_PER_PROCESS:
            return False
        self._sockets[user_id] += 1
        return True

    def dismiss(self, user_id: int) -> None:
        self._sockets[user_id] -= 1
        if self._sockets[user_id] <= 0:
            del self._sockets[user_id]

    async def join(self, listener: Listener, dialog_id: UUID | None) -> Feed | None:
        """Subscribe, and return once Redis has confirmed or 2 s have passed. A read after that misses nothing.

        Whoever joins leaves in the end, also if the wait for Redis was cancelled.
        """
        self._start()
        person = user_channel(listener.user_id)
        channels = []
        if person not in self._people:
            self._people[person] = Person(listener.user_id)
            channels.append(person)
        self._people[person].listeners.add(listener)
        feed = None
        if dialog_id is not None:
            channel = dialog_channel(dialog_id)
            feed = self._feeds.get(channel)
            if feed is None:
                feed = self._feeds[channel] = Feed(dialog_id, self.redis)
                channels.append(channel)
            feed.listeners.add(listener)
        await self._send_command("subscribe", channels)
        return feed

    async def leave(self, listener: Listener, dialog_id: UUID | None) -> None:
        channels = []
        channel = user_channel(listener.user_id)
        if person := self._people.get(channel):
            person.forget(listener)
            if not person.listeners:
                del self._people[channel]
                channels.append(channel)
        channel = dialog_channel(dialog_id) if dialog_id else ""
        if feed := self._feeds.get(channel):
            feed.listeners.discard(listener)
            if not feed.listeners:
                del self._feeds[channel]
                channels.append(channel)
        await self._send_command("unsubscribe", channels)

    def show_badges(self, listener: Listener, read: ReadBadges) -> None:
        self._people[user_channel(listener.user_id)].show_badges(listener, read)

    def write_soon(self, write: Callable[[], Awaitable[None]]) -> None:
        """Queue a socket's live text for the one task that writes for all, since waking a task per frame costs more
        than the frame.

        ``write`` must not wait for a slow reader. Daphne's ``send`` never does, and sockets send nothing to a slow one.
        """
        self._writes.append(write)
        self._to_write.set()

    async def _write_forever(self) -> None:
        while True:
            await self._to_write.wait()
            self._to_write.clear()
            writes, self._writes = self._writes, []
            for write in writes:
                try:
                    await write()
                except ConnectionError:
                    continue  # the socket's own task sees that as well
                except Exception:  # one socket must not end the live text of all
                    log.exception("live_text_not_written")

    async def _send_command(self, command: str, channels: list[str]) -> None:
        """Send a command. After a failure the reader reconnects and subscribes to everything again."""
        if not channels:
            return
        with suppress(RedisError, OSError, asyncio.TimeoutError):
            async with asyncio.timeout(2):
                await self._subscribed.wait()
                await getattr(self._pubsub, command)(*channels)

    # -- the connection ------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        if not self._tasks:
            endless = (self._read_forever(), self._poll_forever(), self._write_forever())
            self._tasks = [asyncio.create_task(work) for work in endless]

    def _channels(self) -> list[str]:
        return [*self._feeds, *self._people]

    async def _read_forever(self) -> None:
        """Hold the subscription. After a lost connection, subscribe to everything again, and all listeners catch up."""
        failures = 0
        while True:
            try:
                await self._read()
            except (TimeoutError, RedisError, OSError) as error:
                failures = failures + 1 if not self._subscribed.is_set() else 1
                log.warning("hub_disconnected", error=str(error) or type(error).__name__, failures=failures)
            finally:
                self._subscribed.clear()
            await asyncio.sleep(random.uniform(0.1, min(0.5 * failures, 5)))

    async def _read(self) -> None:
        connection = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=None,
            socket_connect_timeout=2,
            socket_keepalive=True,
            socket_keepalive_options=waits.keepalive_options(),
        )
        async with connection, connection.pubsub() as pubsub:
            await pubsub.subscribe(LIVE_TEXT_CHANNEL, *self._channels())
            self._pubsub = pubsub
            self._subscribed.set()
            self._refresh_all()
            asked = False
            while True:
                message = await pubsub.get_message(timeout=QUIET_SECONDS)
                if message is not None:
                    asked = False
                    self._dispatch(message)
                elif asked:
                    raise TimeoutError("Redis does not answer")  # half-open connections look quiet, not broken
                else:
                    asked = True
                    await pubsub.ping()

    def _dispatch(self, message: dict[str, Any]) -> None:
        if message["type"] != "message":
            return
        channel = message["channel"].decode()
        try:
            frame = orjson.loads(message["data"])
            if channel == LIVE_TEXT_CHANNEL:
                self._pass_on(frame)
            elif feed := self._feeds.get(channel):
                feed.receive(frame)
            elif person := self._people.get(channel):
                if frame.get("badges"):
                    person.count_badges()
                for listener in tuple(person.listeners):
                    listener.on_frame(frame)
        except (ValueError, KeyError, TypeError) as error:  # one bad frame must not end the subscription
            log.warning("bad_frame", channel=channel, error=str(error))

    def _pass_on(self, frames: list[dict[str, Any]]) -> None:
        """Hand the frames that a worker's generations wrote in one interval to the dialogs that are watched here."""
        for frame in frames:
            if (feed := self._feeds.get(dialog_channel(frame["dialog"]))) is None:
                continue
            if "call" in frame:
                feed.show_line(str(frame["call"]), str(frame["line"]))
            else:
                is_reasoning = bool(frame.get("reasoning"))
                feed.extend(int(frame["generation"]), int(frame["pos"]), str(frame["text"]), reasoning=is_reasoning)

    def _refresh_all(self) -> None:
        """Have all listeners read again, spread over some time, because frames may have been missed."""
        loop = asyncio.get_running_loop()
        seconds = max(1.0, len(self._feeds) / REFRESHES_PER_SECOND)
        for feed in self._feeds.values():
            loop.call_later(random.random() * seconds, self._refresh, feed)
        for person in self._people.values():
            person.count_badges()

    def _refresh(self, feed: Feed) -> None:
        if not feed.listeners:
            return
        for listener in tuple(feed.listeners):
            listener.on_poke(0)
        feed.load()

    async def _poll_forever(self) -> None:
        """Find lost frames by asking the database, for all watched dialogs at once."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            feeds = {feed.dialog_id: feed for feed in self._feeds.values()}
            ids = list(feeds)
            for start in range(0, len(ids), 500):
                try:
                    result = await in_db_thread(_last_seqs, ids[start : start + 500])
                except Exception as error:  # noqa: BLE001  the database is unavailable: the next round asks again
                    log.warning("poll_failed", error=str(error) or type(error).__name__)
                    break
                for dialog_id, seq in result.items():
                    if seq > feeds[dialog_id].seq:
                        feeds[dialog_id].receive({"seq": seq})


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]
