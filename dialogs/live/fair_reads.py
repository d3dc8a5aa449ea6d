"""Fair scheduling of the database reads of sockets: a slow dialog or a busy person never holds up the others.

A read also renders, so a few at a time keep the processor busy. A read that outlasts its turn is waiting for the
database, or is very long: it goes on while others start, and is cancelled if there are too many such reads. The next
reads of a slow dialog take no turns, but queue on their own until one is quick again.
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

TURNS = 2  # reads that take turns at once
TURN_SECONDS = 0.1  # then the next read begins, whether this one is done or not
OVERTIME_READS = 8  # reads at once that outlast their turns
SLOW_SECONDS = 1  # a dialog with a read that took longer is slow
SLOW_READS = 2  # reads at once of slow dialogs
READ_SECONDS = 10  # then its statement is cancelled, and the socket tries again later
READS_PER_DIALOG, READS_PER_PERSON = 2, 4  # at once
THREADS = TURNS + OVERTIME_READS + SLOW_READS  # one for each read that may run

_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="socket-reads")
Result = TypeVar("Result")


class FairReads:
    """The scheduler of a process's socket reads, on one event loop."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._turns = asyncio.Semaphore(TURNS)
        self._overtime = 0
        self._slow_queue = asyncio.Semaphore(SLOW_READS)
        self._slow: set[UUID] = set()
        self._limits: defaultdict[tuple[str, object], _Limit] = defaultdict(_Limit)

    async def read(self, dialog_id: UUID, user_id: int, begin: Callable[[], Callable[[], Result]]) -> Result:
        """Call ``begin`` when the turn has come, run the function that it returns in a thread, and return the result.

        Raises ``TimeoutError``, or the database's error for a cancelled statement. The time-out begins with the turn.
        """
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._limit(("dialog", dialog_id), READS_PER_DIALOG))
            await held.enter_async_context(self._limit(("person", user_id), READS_PER_PERSON))
            takes_turn = dialog_id not in self._slow
            if takes_turn:
                await self._turns.acquire()
            else:
                await held.enter_async_context(self._slow_queue)
            work = Work(begin(), ())  # from here to the task nothing waits, so nothing can be cancelled
            future = asyncio.get_running_loop().run_in_executor(_threads, work.run)
            in_turn = self._turn(dialog_id, future, work) if takes_turn else None
            # The limits are released when the thread is done, even if nobody waits for its result any more.
            running = asyncio.create_task(self._run(dialog_id, future, in_turn, held.pop_all()))
        return await self._in_time(running, work)

    async def _run(
        self,
        dialog_id: UUID,
        future: "asyncio.Future[Result]",
        in_turn: Coroutine[Any, Any, None] | None,
        held: AsyncExitStack,
    ) -> Result:
        begun_at = time.monotonic()
        async with held:
            if in_turn is not None:
                await in_turn
                return await future
            result = await future
            if time.monotonic() - begun_at < SLOW_SECONDS:
                self._slow.discard(dialog_id)
            return result

    async def _turn(self, dialog_id: UUID, future: "asyncio.Future[Any]", work: Work[Any]) -> None:
        """Wait until the read is done. End its turn after TURN_SECONDS at the latest, and cancel it if too many reads
        outlast their turns.
        """
        try:
            await asyncio.wait({future}, timeout=TURN_SECONDS)
        finally:
            self._turns.release()
        if future.done():
            return
        self._overtime += 1
        are_too_many = self._overtime > OVERTIME_READS
        try:
            if not are_too_many:
                await asyncio.wait({future}, timeout=SLOW_SECONDS - TURN_SECONDS)
            if not future.done():
                self._slow.add(dialog_id)
            while are_too_many and not future.done():  # a read without a connection has no statement to cancel yet
                await _cancel(work)
                await asyncio.wait({future}, timeout=TURN_SECONDS)
            await asyncio.wait({future})
        finally:
            self._overtime -= 1

    async def _in_time(self, running: "asyncio.Task[Result]", work: Work[Result]) -> Result:
        running.add_done_callback(_retrieve_exception)
        done, _ = await asyncio.wait({running}, timeout=self._seconds)
        if done:
            return running.result()
        await _cancel(work)
        raise TimeoutError(f"a read for a socket took more than {self._seconds:g} s")

    @asynccontextmanager
    async def _limit(self, key: tuple[str, object], most: int) -> AsyncIterator[None]:
        """Run at most ``most`` reads at once for this dialog or person."""
        limit = self._limits[key]
        limit.users += 1
        limit.semaphore = limit.semaphore or asyncio.Semaphore(most)
        try:
            async with limit.semaphore:
                yield
        finally:
            limit.users -= 1
            if not limit.users:
                del self._limits[key]


class _Limit:
    def __init__(self) -> None:
        self.users = 0  # reads that hold the semaphore or wait for it
        self.semaphore: asyncio.Semaphore | None = None


async def _cancel(work: Work[Any]) -> None:
    with suppress(Exception):  # a statement that cannot be cancelled ends by its own time-out
        await asyncio.to_thread(work.cancel)


def _retrieve_exception(task: "asyncio.Task[Any]") -> None:
    """Retrieve the exception, since asyncio logs exceptions that nobody retrieves, and whoever waited may have gone."""
    if not task.cancelled():
        task.exception()
