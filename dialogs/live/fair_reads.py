"""Reads for sockets, in turns: those of one dialog or one person, and those known to be slow, never hold up everybody's.

A read draws pieces of a page, so more than a few at once only take turns at the processor. One that is still not done after its
turn waits for the database, or is very long: it goes on beside the turns of others, and its dialog's next reads stand in a
line of their own until one is quick again.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar
from uuid import UUID

from dialogs.live.db_threads import Work

TURNS = 2  # reads that draw at once
TURN_SECONDS = 0.25  # then the next one begins, done or not
READ_SECONDS = 10  # then its statement is cancelled, and the socket tries again later
SLOW_READS = 2  # at once, of dialogs whose reads were slow
OF_ONE_DIALOG, OF_ONE_PERSON = 2, 4  # at once
THREADS = 12

_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="socket-reads")
Answer = TypeVar("Answer")


class FairReads:
    """The reads of one process' sockets. For one event loop."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._turns = asyncio.Semaphore(TURNS)
        self._slow_line = asyncio.Semaphore(SLOW_READS)
        self._slow: set[UUID] = set()
        self._places: defaultdict[tuple[str, object], _Places] = defaultdict(_Places)

    async def read(self, dialog_id: UUID, user_id: int, begin: Callable[[], Callable[[], Answer]]) -> Answer:
        """What the function returns that ``begin`` makes when the turn has come. Raises ``TimeoutError``; waiting for the
        turn does not count as time."""
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._place(("dialog", dialog_id), OF_ONE_DIALOG))
            await held.enter_async_context(self._place(("person", user_id), OF_ONE_PERSON))
            if dialog_id in self._slow:
                await held.enter_async_context(self._slow_line)
            await self._turns.acquire()  # from here to the task nothing waits, so nothing can be cancelled
            work = Work(begin(), ())
            future = asyncio.get_running_loop().run_in_executor(_threads, work.run)
            # What is held is given back when the thread is done, however long anybody waits for it.
            running = asyncio.create_task(self._run(dialog_id, future, held.pop_all()))
        return await self._in_time(running, work)

    async def _run(self, dialog_id: UUID, future: "asyncio.Future[Answer]", held: AsyncExitStack) -> Answer:
        async with held:
            try:
                _, late = await asyncio.wait({future}, timeout=TURN_SECONDS)
            finally:
                self._turns.release()
            if late:
                self._slow.add(dialog_id)
            else:
                self._slow.discard(dialog_id)
            return await future

    async def _in_time(self, running: "asyncio.Task[Answer]", work: Work[Answer]) -> Answer:
        running.add_done_callback(_seen)
        done, _ = await asyncio.wait({running}, timeout=self._seconds)
        if done:
            return running.result()
        with suppress(Exception):  # a statement that cannot be cancelled ends by its own time-out
            await asyncio.to_thread(work.cancel)
        raise TimeoutError(f"a read for a socket took more than {self._seconds:g} s")

    @asynccontextmanager
    async def _place(self, key: tuple[str, object], most: int) -> AsyncIterator[None]:
        """One of so many places of this dialog or person."""
        places = self._places[key]
        places.users += 1
        places.free = places.free or asyncio.Semaphore(most)
        try:
            async with places.free:
                yield
        finally:
            places.users -= 1
            if not places.users:
                del self._places[key]


class _Places:
    def __init__(self) -> None:
        self.users = 0  # who hold one or wait for one
        self.free: asyncio.Semaphore | None = None


def _seen(task: "asyncio.Task[Any]") -> None:
    """Whoever waited may have gone: then nobody asks how it ended."""
    if not task.cancelled():
        task.exception()
