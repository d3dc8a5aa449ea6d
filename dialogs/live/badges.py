"""A person's badges, shared by all their pages of one web process."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import structlog

from dialogs.live.db_threads import in_db_thread
from dialogs.live.feeds import Listener

log = structlog.get_logger(__name__)

RETRY_SECONDS = 3
BADGES_SECONDS = 0.25  # between two counts, so that dialogs which end together are counted once
# Takes a person and languages, returns the badges by language.
ReadBadges = Callable[[int, Collection[str]], dict[str, dict[str, Any]] | None]


class Person:
    """A person in this process: their listeners, and the badges that all of these share."""

    def __init__(self, user_id: int) -> None:
        self.user_id = user_id
        self.listeners: set[Listener] = set()
        self._read: ReadBadges | None = None
        self._shown: dict[Listener, dict[str, Any] | None] = {}
        self._badges: dict[str, dict[str, Any]] = {}  # the newest count, by language
        self._due = True
        self._counting: asyncio.Task[None] | None = None

    def show_badges(self, listener: Listener, read: ReadBadges) -> None:
        """Send this listener the badges, now and after each change. ``read`` is the same function for all listeners.

        Programs do not call this, and so need no code of the pages.
        """
        self._read = read
        self._shown[listener] = None
        if self._due or listener.language not in self._badges:
            self.count_badges()
        else:
            self._show()

    def forget(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        self._shown.pop(listener, None)

    def count_badges(self) -> None:
        self._due = True
        if self._shown and (self._counting is None or self._counting.done()):
            self._counting = asyncio.create_task(self._count())

    async def _count(self) -> None:
        while self._due and self._shown and self._read:
            if self._badges:
                await asyncio.sleep(BADGES_SECONDS)
            self._due = False
            try:
                badges = await in_db_thread(self._read, self.user_id, {listener.language for listener in self._shown})
            except Exception as error:  # noqa: BLE001  no database: the old badges stay until the next count
                log.warning("badges_not_counted", user_id=self.user_id, error=str(error) or type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)
                self._due = True
                continue
            if badges is not None:
                self._badges = badges
                self._show()

    def _show(self) -> None:
        for listener, shown in tuple(self._shown.items()):
            badges = self._badges.get(listener.language)
            if badges is None:
                self.count_badges()  # the page was opened while badges were being counted for others
            elif badges != shown:
                self._shown[listener] = badges
                listener.on_frame(badges)
