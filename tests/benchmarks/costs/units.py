"""Processor time of what people do, by process: ``python -m tests.benchmarks.costs.units [--times 60] [--streams 60]``.

Of each: milliseconds of CPU of all threads of the web process, the worker (and sweeper), Redis and PostgreSQL, less
what they take at rest. The dialogs have 100 answered messages; a message has 100 characters, its answer 400. What it
costs to run so many people, in ``docs/costs.md``, is made of these by ``tables.py``.

rest            a second in which nobody does anything
a message       POST to the API until all is stored, no page open; by the whole history, and by retention in 8,000
                tokens
a page          the page of a dialog, whole, as a browser gets it first
opening         the socket of a page
a page's part   what one page that is open takes more of a message
a token         of an answer that streams 25 a second to one open page
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any
from uuid import UUID

import httpx2
import orjson
import psutil
import psycopg
from websockets.sync.client import connect

from tests.benchmarks.fanout import opened, prepare, warm_up
from tests.benchmarks.frameworks.course import children
from tests.benchmarks.frameworks.meter import processor_ns
from tests.benchmarks.overhead import Product, conninfo
from tests.benchmarks.rig import Rig, load, progress, report, rig, table
from tests.benchmarks.seeding import USER_CHARS, dialog_at, text_of

DEPTH = 100
REST_SECONDS = 10.0
SETTLE_SECONDS = 1.0  # until what a thing leads to has been done
TOKENS = 500  # of a streamed answer
RAMP_SECONDS = 0.1  # between two messages that begin a stream
PATIENCE_SECONDS = 60
WARM_UP = 5
PARTS = ("web", "worker", "Redis", "PostgreSQL")
Spent = dict[str, float]  # milliseconds by part


def processes(rig: Rig) -> dict[str, list[int]]:
    redis, server, web = rig.stack.redis.process, rig.postgres.process, rig.stack.web
    assert redis is not None
    assert server is not None
    others = [part.pid for part in rig.stack.parts if part is not web]
    result = {"web": [web.pid], "worker": others, "Redis": [redis.pid], "PostgreSQL": [server.pid]}
    return {part: [*pids, *(child for pid in pids for child in children(pid))] for part, pids in result.items()}


class Meter:
    def __init__(self, rig: Rig) -> None:
        self.rig, self.rest = rig, dict.fromkeys(PARTS, 0.0)
        time.sleep(SETTLE_SECONDS)
        with self.spending() as spent:
            time.sleep(REST_SECONDS)
        self.rest = {part: ms / REST_SECONDS for part, ms in spent.items()}

    @contextmanager
    def spending(self) -> Iterator[Spent]:
        """Fills what it gives when it is left."""
        spent: Spent = {}
        before, began = self._now(), time.perf_counter()
        yield spent
        time.sleep(SETTLE_SECONDS)
        seconds = time.perf_counter() - began
        for part, now in self._now().items():
            ns = sum(count - before[part].get(pid, 0) for pid, count in now.items())
            spent[part] = ns / 1e6 - self.rest[part] * seconds

    def _now(self) -> dict[str, dict[int, int]]:
        return {part: processor_ns(pids) for part, pids in processes(self.rig).items()}

    def each(self, times: int, act: Callable[[int], object]) -> Spent:
        """Of one of so many."""
        for number in range(WARM_UP):
            act(number)
        with self.spending() as spent:
            for number in range(WARM_UP, WARM_UP + times):
                act(number)
        return {part: ms / times for part, ms in spent.items()}


@contextmanager
def page(rig: Rig, dialog: UUID, after: int, cookie: str) -> Iterator[None]:
    """An open page, drawn up to this event: its socket, which is read and answers pings."""
    url, ended, ready = f"{rig.stack.socket_url}/ws/dialogs/{dialog}/?after={after}", Event(), Event()
    origin: Any = rig.stack.base_url

    def read() -> None:
        with connect(url, additional_headers={"Cookie": f"sessionid={cookie}"}, origin=origin) as socket:
            ready.set()
            while not ended.is_set():
                try:
                    frame = orjson.loads(socket.recv(timeout=0.2))
                except TimeoutError:
                    continue
                if frame["type"] == "ping":
                    socket.send(orjson.dumps({"type": "ack", "n": frame["n"]}).decode())

    reader = Thread(target=read)
    reader.start()
    assert ready.wait(10)
    try:
        yield
    finally:
        ended.set()
        reader.join()


async def stream(rig: Rig, meter: Meter, streams: int) -> tuple[Spent, Spent]:
    """What opening a page's socket takes, and a whole answer that streams to it."""
    watchers = await asyncio.to_thread(prepare, rig, streams)
    with meter.spending() as opening:
        tasks = await opened(rig, watchers)
    client = httpx2.AsyncClient(base_url=rig.stack.base_url, trust_env=False, timeout=PATIENCE_SECONDS)
    with meter.spending() as answering:
        for watcher in watchers:
            address, text_of = f"/api/dialogs/{watcher.dialog_id}/messages", {"text": f"{streams} {watcher.dialog_id}"}
            answer = await client.post(address, json=text_of, headers={"Authorization": f"Bearer {watcher.key}"})
            assert answer.status_code == 202, answer.text
            await asyncio.sleep(RAMP_SECONDS)
        await asyncio.wait_for(asyncio.gather(*tasks), TOKENS / 25 + PATIENCE_SECONDS)
    first, last = ({part: ms / streams for part, ms in spent.items()} for spent in (opening, answering))
    return first, last


def measured(rig: Rig, times: int, streams: int, advance: Callable[[], None]) -> dict[str, Spent]:
    from redis import Redis

    from tests.harness.browser import session_key

    owner = rig.people(1)[0]
    cookie = session_key(owner)
    browser = httpx2.Client(
        base_url=rig.stack.base_url, cookies={"sessionid": cookie}, trust_env=False, timeout=PATIENCE_SECONDS
    )
    result: dict[str, Spent] = {}

    def ask(dialog: UUID) -> Callable[[int], object]:
        return lambda number: product.exchange(dialog, text_of(USER_CHARS, DEPTH + number))

    with psycopg.connect(conninfo(rig), autocommit=True) as looking:
        product = Product(rig, rig.stack.api_as(owner), looking, Redis.from_url(rig.stack.redis.url))
        whole, kept = (
            dialog_at(DEPTH, rig.agent(*agent), owner).pk
            for agent in (("prose-whole", "none"), ("prose-small", "retention"))
        )
        warm_up(rig)
        looking.execute("VACUUM ANALYZE")
        meter = Meter(rig)
        result["rest, a second"] = meter.rest
        advance()
        result["a message, whole history"] = meter.each(times, ask(whole))
        advance()
        result["a message, retention"] = meter.each(times, ask(kept))
        advance()
        result["a dialog's page"] = meter.each(times, lambda _: browser.get(f"/d/{whole}/").raise_for_status())
        advance()
        newest = "SELECT last_event_seq FROM dialogs_dialog WHERE id = %s"
        with page(rig, whole, looking.execute(newest, (whole,)).fetchone()[0], cookie):  # type: ignore[index]
            seen = meter.each(times, ask(whole))
        result["the page's part of a message"] = less(seen, result["a message, whole history"])
        advance()
        opening, answered = asyncio.run(stream(rig, meter, streams))
        result["opening a page's socket"] = opening
        tokens = less(less(answered, result["a message, whole history"]), result["the page's part of a message"])
        result["1,000 tokens to a page"] = {part: 1000 * ms / TOKENS for part, ms in tokens.items()}
        advance()
    return result


def less(one: Spent, other: Spent) -> Spent:
    return {part: one[part] - other[part] for part in PARTS}


def memory(rig: Rig) -> dict[str, float]:
    """Megabytes by part, shared pages by their share."""
    result = dict.fromkeys(PARTS, 0.0)
    for part, pids in processes(rig).items():
        for pid in pids:
            with suppress(psutil.NoSuchProcess):  # a database has helpers that come and go
                result[part] += psutil.Process(pid).memory_full_info().pss / 1e6
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--streams", type=int, default=60)
    asked = parser.parse_args()
    with rig(tokens=TOKENS, concurrency=asked.streams + 20) as running, progress() as bar:
        task = bar.add_task("what people do", total=6)
        result = measured(running, asked.times, asked.streams, lambda: bar.advance(task))
        held = memory(running)
    rows = [
        [name, *(f"{max(0.0, spent[part]):.1f}" for part in PARTS), f"{sum(spent.values()):.1f}"]
        for name, spent in result.items()
    ]
    rows.append(["memory, MB", *(f"{held[part]:.0f}" for part in PARTS), f"{sum(held.values()):.0f}"])
    report(
        f"## What people do, ms of CPU ({load()}; {asked.times} of each)\n\n" + table(["", *PARTS, "together"], rows)
    )


if __name__ == "__main__":
    main()
