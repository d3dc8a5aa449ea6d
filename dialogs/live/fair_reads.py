"""Fair database reads for sockets: those of one dialog or one person, and those known to be slow, never hold up the others.

A read draws pieces of a page, so more than a few at once only take turns at the processor. One that is still not done after its
turn waits for the database, or is very long: it goes on beside the turns of others, and is cancelled where too many do. The next
reads of a dialog that was slow take no turns: they stand in a line of their own until one is quick again.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar
from uuid import UUID

from dialogs.live.db_threads import Work

TURNS = 2  # reads that draw at once
TURN_SECONDS = 0.1  # then the next one begins, done or not
LATE_READS = 8  # at once, that are past their turns
SLOW_SECONDS = 1  # a dialog is slow whose read took so long
SLOW_READS = 2  # at once, of slow dialogs
READ_SECONDS = 10  # then its statement is cancelled, and the socket tries again later
OF_ONE_DIALOG, OF_ONE_PERSON = 2, 4  # at once
THREADS = TURNS + LATE_READS + SLOW_READS  # so that whoever has a turn has a thread

_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="socket-reads")
Answer = TypeVar("Answer")


class FairReads:
    """The reads of one process' sockets. For one event loop."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._turns = asyncio.Semaphore(TURNS)
        self._late = 0
        self._slow_line = asyncio.Semaphore(SLOW_READS)
        self._slow: set[UUID] = set()
        self._places: defaultdict[tuple[str, object], _Places] = defaultdict(_Places)

    async def read(self, dialog_id: UUID, user_id: int, begin: Callable[[], Callable[[], Answer]]) -> Answer:
        """What the function returns that ``begin`` makes when the turn has come. Raises ``TimeoutError``, or what the database
        says of a statement that was cancelled; waiting for the turn does not count as time."""
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._place(("dialog", dialog_id), OF_ONE_DIALOG))
            await held.enter_async_context(self._place(("person", user_id), OF_ONE_PERSON))
            takes_turn = dialog_id not in self._slow
            if takes_turn:
                await self._turns.acquire()
            else:
                await held.enter_async_context(self._slow_line)
            work = Work(begin(), ())  # from here to the task nothing waits, so nothing can be cancelled
            future = asyncio.get_running_loop().run_in_executor(_threads, work.run)
            in_turn = self._turn(dialog_id, future, work) if takes_turn else None
            # What is held is given back when the thread is done, however long anybody waits for it.
            running = asyncio.create_task(self._run(dialog_id, future, in_turn, held.pop_all()))
        return await self._in_time(running, work)

    async def _run(
        self,
        dialog_id: UUID,
        future: "asyncio.Future[Answer]",
        in_turn: Coroutine[Any, Any, None] | None,
        held: AsyncExitStack,
    ) -> Answer:
        begun_at = time.monotonic()
        async with held:
            if in_turn is not None:
                await in_turn
                return await future
            answer = await future
            if time.monotonic() - begun_at < SLOW_SECONDS:
                self._slow.discard(dialog_id)
            return answer

    async def _turn(self, dialog_id: UUID, future: "asyncio.Future[Any]", work: Work[Any]) -> None:
        """Returns when the read is done; others' turns may begin before."""
        try:
            _, late = await asyncio.wait({future}, timeout=TURN_SECONDS)
        finally:
            self._turns.release()
        if not late:
            return
        self._late += 1
        try:
            seconds = SLOW_SECONDS - TURN_SECONDS if self._late <= LATE_READS else 0
            _, slow = await asyncio.wait({future}, timeout=seconds)
            if slow:
                self._slow.add(dialog_id)
            if not seconds:
                await _cancel(work)
            await asyncio.wait({future})
        finally:
            self._late -= 1

    async def _in_time(self, running: "asyncio.Task[Answer]", work: Work[Answer]) -> Answer:
        running.add_done_callback(_seen)
        done, _ = await asyncio.wait({running}, timeout=self._seconds)
        if done:
            return running.result()
        await _cancel(work)
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


async def _cancel(work: Work[Any]) -> None:
    with suppress(Exception):  # a statement that cannot be cancelled ends by its own time-out
        await asyncio.to_thread(work.cancel)


def _seen(task: "asyncio.Task[Any]") -> None:
    """Whoever waited may have gone: then nobody asks how it ended."""
    if not task.cancelled():
        task.exception()
