"""Slow readers beside fast ones."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import DatabaseError, connection, connections

from dialogs.live import fair_reads
from dialogs.live.fair_reads import READS_PER_DIALOG, READS_PER_PERSON, FairReads

pytestmark = pytest.mark.anyio

SLOW_SECONDS = 10


class Counter:
    """A read of so many seconds, which knows how many ran at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running = self.most = self.done = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(self.seconds)
        connections.close_all()
        with self._lock:
            self.running -= 1
            self.done += 1


async def read(reads: FairReads, what: Callable[[], None], dialog: UUID | None = None, person: int = 0) -> float:
    """Seconds from asking to the answer."""
    begun_at = time.monotonic()
    await reads.read(dialog or uuid4(), person, lambda: what)
    return time.monotonic() - begun_at


def wait_in_the_database(pause_s: float = 0) -> None:
    time.sleep(pause_s)  # as for a connection
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_sleep({SLOW_SECONDS})")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("slow", "pause_s"), [(2, 0), (fair_reads.THREADS + 4, 0), (fair_reads.THREADS + 4, 0.3)])
async def test_slow_readers_hold_up_nobody_else(slow: int, pause_s: float) -> None:
    """From the first moment on, when nobody knows yet that they are slow, and when all do."""
    reads, dialogs = FairReads(), [uuid4() for _ in range(slow)]

    async def read_forever(at: int) -> None:
        await asyncio.sleep(at * 0.1)  # people come one after another
        while True:
            with suppress(DatabaseError):  # it is cancelled where too many are late
                await read(reads, partial(wait_in_the_database, pause_s), dialogs[at], person=at)

    background = [asyncio.create_task(read_forever(at)) for at in range(slow)]
    quick = []
    for at in range(slow * 4 + 40):  # for a second more than they take to come
        quick.append(asyncio.create_task(read(reads, Counter(0.005), person=500 + at)))
        await asyncio.sleep(0.025)
    waits = sorted(await asyncio.gather(*quick))
    for task in background:
        task.cancel()
    await asyncio.to_thread(end_their_statements)
    while reads._limits:
        await asyncio.sleep(0.01)
    assert waits[len(waits) // 2] < 0.5
    assert waits[-1] < SLOW_SECONDS, "none waited for a slow read to end"


def end_their_statements() -> None:
    """Cancel the slow reads over a connection of its own, since they may hold every one of the pool."""
    with psycopg.connect(**connection.get_connection_params()) as own:
        own.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(%' "
            "AND pid <> pg_backend_pid()"
        )


async def test_no_dialog_and_no_person_takes_every_place() -> None:
    reads, of_dialog, of_person = FairReads(), Counter(0.05), Counter(0.3)
    dialog = uuid4()
    same = [read(reads, of_dialog, dialog, person=at) for at in range(20)]
    own = [read(reads, of_person, person=-1) for _ in range(12)]
    await asyncio.gather(*same, *own)
    assert of_dialog.most <= READS_PER_DIALOG
    assert of_person.most <= READS_PER_PERSON
    assert (of_dialog.done, of_person.done) == (20, 12)
    assert not reads._limits


async def test_who_gives_up_leaves_no_place_taken() -> None:
    reads, dialog = FairReads(), uuid4()
    for _ in range(10):
        task = asyncio.create_task(read(reads, Counter(0.2), dialog))
        await asyncio.sleep(0.01)
        task.cancel()
    assert await read(reads, Counter(0), dialog) < 3
    await asyncio.sleep(0.5)
    assert not reads._limits


async def test_an_error_comes_to_whoever_asked() -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        await read(FairReads(), fail)


@pytest.mark.django_db(transaction=True)
async def test_a_statement_that_takes_too_long_is_cancelled() -> None:
    ended = threading.Event()

    def wait_in_the_database() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(20)")
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        await FairReads(seconds=0.5).read(uuid4(), 1, partial(partial, wait_in_the_database))
    assert await asyncio.to_thread(ended.wait, 5), "its thread and its connection are free again"
