"""N dialogs that stream at once, each to its own socket: is anything lost, and how old is a token when it arrives?

``python -m tests.benchmarks.fanout [--dialogs 50,100,300] [--tokens 250]``. Model server, PostgreSQL, Redis, web, worker,
sweeper and all N clients share the machine. Each token is the microsecond at which the provider sent it. Nothing is lost
when the text of the answer's turn, as the socket delivered it, equals what the provider sent.
"""

import argparse
import asyncio
import time
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any
from urllib.request import urlopen
from uuid import UUID

import orjson
import psutil
from websockets.asyncio.client import ClientConnection, connect

from tests.benchmarks.rig import Rig, load, progress, report, rig, table

DIALOGS_PER_PERSON = 10  # a person may have 20 sockets
ANSWER_SECONDS = 60  # beyond the stream's own length
SAMPLE_SECONDS = 0.5


@dataclass
class Watcher:
    """One page: its socket, and what came through it."""

    dialog_id: UUID
    cookie: str
    ages: list[float] = field(default_factory=list)  # milliseconds, one per token
    drafted: str = ""
    resets: int = 0
    answer: str | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, rig: Rig, ready: asyncio.Semaphore) -> None:
        url = f"{rig.stack.socket_url}/ws/dialogs/{self.dialog_id}/"
        headers = {"Cookie": f"sessionid={self.cookie}"}
        origin: Any = rig.stack.base_url
        async with connect(url, additional_headers=headers, origin=origin, compression=None, open_timeout=60) as socket:
            ready.release()
            async for text in socket:
                now_us = time.monotonic_ns() // 1000
                await self._take(orjson.loads(text), now_us, socket)
                if self.ended.is_set():
                    return

    async def _take(self, frame: dict[str, Any], now_us: int, socket: ClientConnection) -> None:
        match frame["type"]:
            case "ping":
                await socket.send(orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
            case "draft":
                self._take_draft(frame, now_us)
            case "turn" if frame["data"].get("role") == "assistant":
                self.answer = frame["data"]["text"]
            case "state" if frame["data"]["state"] in ("idle", "failed") and self.answer is not None:
                self.ended.set()

    def _take_draft(self, frame: dict[str, Any], now_us: int) -> None:
        if frame.get("reset"):
            self.resets += 1
        fresh = frame["text"][max(0, len(self.drafted) - frame["pos"]) :]
        if frame["pos"] <= len(self.drafted):
            self.drafted += fresh
        self.ages += [(now_us - int(token, 16)) / 1000 for token in fresh.split()]


@dataclass
class Meter:
    """CPU and memory by process, over the middle of the run."""

    processes: dict[str, list[psutil.Process]]
    began: float = 0.0
    at_start: dict[str, float] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        self.began, self.at_start = time.monotonic(), {name: self._cpu(name) for name in self.processes}

    def sample(self) -> None:
        for name, found in self.processes.items():
            mb = sum(process.memory_info().rss for process in found if process.is_running()) / 1e6
            self.peak_mb[name] = max(self.peak_mb.get(name, 0.0), mb)

    def rows(self) -> list[list[str]]:
        seconds = time.monotonic() - self.began
        return [
            [name, f"{100 * (self._cpu(name) - self.at_start[name]) / seconds:.0f} %", f"{self.peak_mb[name]:,.0f}"]
            for name in self.processes
        ]

    def _cpu(self, name: str) -> float:
        spent = 0.0
        for process in self.processes[name]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            spent += times.user + times.system
        return spent


def meter_of(rig: Rig) -> Meter:
    def tree(pid: int) -> list[psutil.Process]:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]

    assert rig.postgres.process is not None
    assert rig.stack.redis.process is not None
    return Meter(
        {
            "web": tree(rig.stack.web.pid),
            "worker": [process for part in rig.stack.workers for process in tree(part.pid)],
            "PostgreSQL (shared pages counted often)": tree(rig.postgres.process.pid),
            "Redis": tree(rig.stack.redis.process.pid),
            "model server": tree(rig.model_process.pid),
            "clients": [psutil.Process()],
        }
    )


@dataclass
class Outcome:
    dialogs: int
    ended: int
    lost: int
    missing_chars: int
    ages: list[float]
    resets: int
    seconds: float
    processes: list[list[str]]


def prepare(rig: Rig, dialogs: int) -> list[tuple[UUID, str, Any]]:
    from dialogs.inbox import create_dialog
    from tests.harness.browser import session_key

    agent, people = rig.agent("steady"), rig.people((dialogs - 1) // DIALOGS_PER_PERSON + 1)
    cookies = {person.pk: session_key(person) for person in people}
    owners = [people[index // DIALOGS_PER_PERSON] for index in range(dialogs)]
    return [(create_dialog(owner, agent.pk, "Stream").pk, cookies[owner.pk], owner) for owner in owners]


def say(rig: Rig, dialog_ids: list[UUID], run: str) -> None:
    """Send the messages as the API would, but wake the stack's own workers."""
    from dialogs.inbox import post_message

    for dialog_id in dialog_ids:
        post_message(dialog_id, f"{run} {dialog_id}")


async def stream(rig: Rig, dialogs: int, tokens: int) -> Outcome:
    made = await asyncio.to_thread(prepare, rig, dialogs)
    watchers = [Watcher(dialog_id, cookie) for dialog_id, cookie, _ in made]
    ready = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(watcher.listen(rig, ready)) for watcher in watchers]
    for _ in watchers:
        await ready.acquire()
    await asyncio.sleep(1)
    meter = meter_of(rig)
    meter.start()
    started = time.monotonic()
    run = f"{dialogs}"
    await asyncio.to_thread(say, rig, [watcher.dialog_id for watcher in watchers], run)
    deadline = time.monotonic() + tokens / 25 + ANSWER_SECONDS
    while time.monotonic() < deadline and not all(task.done() for task in tasks):
        meter.sample()
        await asyncio.sleep(SAMPLE_SECONDS)
    processes, seconds = meter.rows(), time.monotonic() - started
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    sent = orjson.loads(await asyncio.to_thread(lambda: urlopen(f"{rig.model_url}/sent").read()))
    lost = [watcher for watcher in watchers if watcher.answer != sent.get(f"{run} {watcher.dialog_id}")]
    missing = sum(len(w.answer or "") - len(w.drafted) for w in watchers if len(w.drafted) < len(w.answer or ""))
    ages = [age for watcher in watchers for age in watcher.ages]
    ended = sum(watcher.ended.is_set() for watcher in watchers)
    return Outcome(dialogs, ended, len(lost), missing, ages, sum(w.resets for w in watchers), seconds, processes)


def row_of(found: Outcome) -> list[str]:
    cut = quantiles(found.ages, n=100) if len(found.ages) > 1 else [0.0] * 99
    return [
        f"{found.dialogs}", f"{found.ended}", f"{found.lost}", f"{found.missing_chars:,}", f"{len(found.ages):,}",
        f"{cut[49]:.0f}", f"{cut[94]:.0f}", f"{cut[98]:.0f}", f"{found.seconds:.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialogs", default="50,100,300")
    parser.add_argument("--tokens", type=int, default=250, help="of each answer, at 25 a second")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.dialogs.split(",")]
    concurrency = max(sizes) // asked.workers + 20
    outcomes = []
    with rig(workers=asked.workers, concurrency=concurrency, tokens=asked.tokens) as running, progress() as bar:
        from django.conf import settings

        settings.REDIS_URL = running.stack.redis.url  # here the stack's workers are to be woken
        from dominds.celery import app

        app.conf.broker_url = running.stack.redis.url
        task = bar.add_task("streaming", total=len(sizes))
        for size in sizes:
            outcomes.append(asyncio.run(stream(running, size, asked.tokens)))
            bar.advance(task)
    head = ["dialogs", "ended", "answers not equal", "draft characters only seen at the commit", "tokens seen live"]
    head += ["p50, ms", "p95", "p99", "seconds"]
    report(
        f"## Streams of 25 tokens a second ({load()}; {asked.tokens} tokens each, {asked.workers} worker)\n\n"
        + table(head, [row_of(found) for found in outcomes])
    )
    for found in outcomes:
        report(f"{found.dialogs} dialogs:\n\n" + table(["process", "CPU of one core", "memory, MB"], found.processes))


if __name__ == "__main__":
    main()
