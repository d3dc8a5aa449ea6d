"""N dialogs that stream at once, each to its own socket: is anything lost, and how old is a token when it arrives?

``python -m tests.benchmarks.fanout [--dialogs 50,100,300] [--tokens 750] [--ramp 0.07]``. Model server, PostgreSQL,
Redis, web, worker, sweeper, all N clients and the sender share the machine. Each token is the microsecond at which the
provider sent it. Nothing is lost when the text of the answer's turn, as the socket delivered it, equals what the
provider sent. ``--ramp`` is the pause between two messages in seconds; "all" counts the tokens of the time in which all
N stream. ``--kill worker,web,redis`` kills these parts, each in a run of its own, while all stream, starts them again,
and tells when each dialog went on. ``--idle 1000`` opens so many sockets on which nothing happens and tells what they
cost the web process.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any
from urllib.request import urlopen
from uuid import UUID

import orjson
import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.benchmarks.rig import Rig, load, progress, report, rig, table
from tests.benchmarks.seeding import dialog_at
from tests.harness.stack import ROOT

DIALOGS_PER_PERSON = 10  # a person may have 20 sockets
ANSWER_SECONDS = 60  # beyond the stream's own length
WARM_UP_ANSWERS = 40
SAMPLE_SECONDS = 0.5
SUPERVISOR_SECONDS = 0.3  # until ``up`` has seen a death


@dataclass
class Watcher:
    """One page: its socket, and what came through it. Moments are microseconds of the monotonic clock."""

    dialog_id: UUID
    cookie: str
    key: str
    seq: int = 0
    generation: int = 0
    ages: list[tuple[int, float]] = field(default_factory=list)  # when a token came, and its age in milliseconds
    drafted: str = ""
    resets: int = 0
    connections: int = 0
    answer: str | None = None
    said_us: int = 0
    first_us: int = 0
    ended_us: int = 0
    killed_us: int = 0  # when a part was killed
    went_on_us: int = 0  # when something came that was sent after that
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, rig: Rig, ready: asyncio.Semaphore) -> None:
        headers = {"Cookie": f"sessionid={self.cookie}"}
        origin: Any = rig.stack.base_url
        while not self.ended.is_set():
            url = f"{rig.stack.socket_url}/ws/dialogs/{self.dialog_id}/?after={self.seq}"
            with suppress(OSError, WebSocketException, TimeoutError):
                async with connect(
                    url, additional_headers=headers, origin=origin, compression=None, open_timeout=60
                ) as socket:
                    self.connections += 1
                    ready.release()
                    async for text in socket:
                        await self._take(orjson.loads(text), time.monotonic_ns() // 1000, socket)
                        if self.ended.is_set():
                            return
            await asyncio.sleep(0.25 + random.random())  # as a page does after a first failure

    async def _take(self, frame: dict[str, Any], now_us: int, socket: ClientConnection) -> None:
        if "seq" in frame:
            self.seq = frame["seq"]
        match frame["type"]:
            case "ping":
                await socket.send(orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
            case "draft":
                self._take_draft(frame, now_us)
            case "turn" if frame["data"].get("role") == "assistant":
                self.answer = frame["data"]["text"]
            case "state" if frame["data"]["state"] in ("idle", "failed") and self.answer is not None:
                self.ended_us = now_us
                if self.killed_us:
                    self.went_on_us = self.went_on_us or now_us
                self.ended.set()

    def _take_draft(self, frame: dict[str, Any], now_us: int) -> None:
        if frame.get("reset"):
            self.resets += 1
        if frame["generation"] != self.generation:
            self.generation, self.drafted = frame["generation"], ""
        fresh = frame["text"][max(0, len(self.drafted) - frame["pos"]) :]
        if frame["pos"] <= len(self.drafted):
            self.drafted += fresh
        for token in fresh.split():
            sent_us = int(token, 16)
            self.first_us = self.first_us or now_us
            if self.killed_us and sent_us > self.killed_us and not self.went_on_us:
                self.went_on_us = now_us
            self.ages.append((now_us, (now_us - sent_us) / 1000))


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
        for name, members in self.processes.items():
            with suppress(psutil.NoSuchProcess):
                mb = sum(process.memory_info().rss for process in members) / 1e6
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


def meter_of(rig: Rig, sender: int) -> Meter:
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
            "sender": [psutil.Process(sender)],
        }
    )


@dataclass
class Outcome:
    dialogs: int
    watchers: list[Watcher]
    lost: int
    seconds: float
    processes: list[list[str]]
    posts: list[float]  # milliseconds each took
    kill: str = ""
    killed_us: int = 0

    @property
    def all_stream(self) -> tuple[int, int]:
        """From the last first token to the first end."""
        return max(w.first_us for w in self.watchers), min((w.ended_us for w in self.watchers if w.ended_us), default=0)

    @property
    def ended(self) -> int:
        return sum(watcher.ended.is_set() for watcher in self.watchers)

    @property
    def ages(self) -> list[float]:
        """Milliseconds, of each token."""
        return [age for watcher in self.watchers for _, age in watcher.ages]

    @property
    def firsts(self) -> list[float]:
        """Milliseconds from each message to its first token."""
        return [(w.first_us - w.said_us) / 1000 for w in self.watchers if w.first_us and w.said_us]

    def row(self) -> list[str]:
        result = self.watchers
        since, until = self.all_stream
        ages = self.ages
        while_all = [age for watcher in result for at, age in watcher.ages if since <= at < until]
        missing = sum(len(w.answer or "") - len(w.drafted) for w in result if len(w.drafted) < len(w.answer or ""))
        return [
            f"{self.dialogs}",
            f"{self.ended}",
            f"{self.lost}",
            f"{missing:,}",
            f"{len(ages):,}",
            cuts(ages),
            f"{max(0, until - since) / 1e6:.0f}",
            cuts(while_all),
            cuts(self.firsts),
            cuts(self.posts),
            f"{self.seconds:.0f}",
        ]


def cuts(values: list[float]) -> str:
    """p50 / p95 / p99."""
    if len(values) < 2:
        return "–"
    cut = quantiles(values, n=100)
    return f"{cut[49]:.0f} / {cut[94]:.0f} / {cut[98]:.0f}"


def prepare(rig: Rig, dialogs: int) -> list[Watcher]:
    from dialogs.accounts.api_keys import create_key
    from dialogs.actions.messages import create_dialog
    from tests.harness.browser import session_key

    agent, people = rig.agent("steady"), rig.people((dialogs - 1) // DIALOGS_PER_PERSON + 1)
    cookies = {person.pk: (session_key(person), create_key(person, name="bench")) for person in people}
    owners = [people[index // DIALOGS_PER_PERSON] for index in range(dialogs)]
    return [Watcher(create_dialog(owner, agent.pk, "Stream").pk, *cookies[owner.pk]) for owner in owners]


def warm_up(rig: Rig) -> None:
    """Answers before those that are measured: a worker's first call loads an SDK,
    and threads open their connections."""
    from dialogs.models import Dialog

    owner = rig.people(1)[0]
    api = rig.stack.api_as(owner)
    dialogs = [dialog_at(0, rig.agent("quick"), owner).pk for _ in range(WARM_UP_ANSWERS)]
    for dialog_id in dialogs:
        assert api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": "Hello."}).status_code == 202
    while Dialog.objects.filter(pk__in=dialogs).exclude(state="idle").exists():
        time.sleep(SAMPLE_SECONDS)


async def opened(rig: Rig, watchers: list[Watcher]) -> list["asyncio.Task[None]"]:
    """Every watcher's socket, once all are open."""
    ready = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(watcher.listen(rig, ready)) for watcher in watchers]
    for _ in watchers:
        await ready.acquire()
    await asyncio.sleep(2)
    return tasks


async def stream(rig: Rig, dialogs: int, tokens: int, ramp: float, kill: str) -> Outcome:
    watchers = await asyncio.to_thread(prepare, rig, dialogs)
    tasks = await opened(rig, watchers)
    saying = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.benchmarks.saying"),
            *("--port", str(rig.stack.port), "--seconds", str(ramp * dialogs)),
        ],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    meter = meter_of(rig, saying.pid)
    meter.start()
    started = time.monotonic()
    lines = "".join(f"{watcher.dialog_id} {watcher.key} {dialogs} {watcher.dialog_id}\n" for watcher in watchers)
    sending = asyncio.create_task(asyncio.to_thread(saying.communicate, lines))
    deadline = time.monotonic() + ramp * dialogs + tokens / 25 + ANSWER_SECONDS
    killed_us = 0

    def tell() -> None:
        nonlocal killed_us
        killed_us = time.monotonic_ns() // 1000
        for watcher in watchers:
            watcher.killed_us = killed_us

    while time.monotonic() < deadline and not all(task.done() for task in tasks):
        meter.sample()
        await asyncio.sleep(SAMPLE_SECONDS)
        if kill and not killed_us and all(watcher.first_us for watcher in watchers):
            await asyncio.sleep(2)
            await asyncio.get_running_loop().run_in_executor(_supervisor, KILLS[kill], rig, tell)
    processes, seconds = meter.rows(), time.monotonic() - started
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    texts = [line.split() for line in (await sending)[0].splitlines()]
    sent_us = {dialog: int(at) for dialog, at, _, _ in texts}
    for watcher in watchers:
        watcher.said_us = sent_us.get(str(watcher.dialog_id), 0)
    sent = orjson.loads(await asyncio.to_thread(lambda: urlopen(f"{rig.model_url}/sent").read()))
    ended = [watcher for watcher in watchers if watcher.ended.is_set()]
    lost = [watcher for watcher in ended if watcher.answer != sent.get(f"{dialogs} {watcher.dialog_id}")]
    posts = [int(took) / 1000 for _, _, _, took in texts]
    return Outcome(dialogs, watchers, len(lost), seconds, processes, posts, kill, killed_us)


# What a thread has started dies with it, so this one stays.
_supervisor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="supervisor")

# -- A part dies -------------------------------------------------------------------------------------------------------


SUPERVISOR = """
import django
django.setup()
from django.core.management import call_command, load_command_class
load_command_class("dialogs", "free_leases")
print("ready", flush=True)
call_command("free_leases", worker=input())
"""


def kill_worker(rig: Rig, tell: Callable[[], None]) -> None:
    """As ``up`` does: a new worker starts, and a process that was there before frees by name what the dead one held."""
    dead = rig.stack.workers[0]
    name = next(word for word in psutil.Process(dead.pid).cmdline() if word.startswith("worker-")).removesuffix("@%h")
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR],
        cwd=ROOT,
        env=rig.stack.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdout is not None
    supervisor.stdout.readline()
    tell()
    dead.kill()
    time.sleep(SUPERVISOR_SECONDS)
    rig.stack.start_worker()
    supervisor.communicate(name)


def kill_web(rig: Rig, tell: Callable[[], None]) -> None:
    tell()
    rig.stack.web.kill()
    time.sleep(SUPERVISOR_SECONDS)
    rig.stack.start_web()


def kill_redis(rig: Rig, tell: Callable[[], None]) -> None:
    tell()
    rig.stack.redis.kill()
    time.sleep(SUPERVISOR_SECONDS)
    rig.stack.redis.start()


KILLS: dict[str, Callable[[Rig, Callable[[], None]], None]] = {
    "worker": kill_worker,
    "web": kill_web,
    "redis": kill_redis,
}


def recovery_row(value: Outcome) -> list[str]:
    after = [(w.went_on_us - value.killed_us) / 1e6 for w in value.watchers if w.went_on_us]
    running = sum(not watcher.ended_us or watcher.ended_us > value.killed_us for watcher in value.watchers)
    middle = sorted(after)[len(after) // 2] if after else 0.0
    return [
        value.kill,
        f"{len(after)} of {running}",
        f"{middle:.1f}",
        f"{max(after, default=0.0):.1f}",
        f"{value.ended}",
        f"{value.lost}",
    ]


# -- Nothing happens ---------------------------------------------------------------------------------------------------


async def idle(rig: Rig, sockets: int) -> list[str]:
    """Memory of the web process before, with, and after so many open sockets."""
    web = psutil.Process(rig.stack.web.pid)

    def mb() -> float:
        return float(web.memory_info().rss / 1e6)

    first = await asyncio.to_thread(prepare, rig, 20)
    warm = await opened(rig, first)  # what the first sockets import and cache is no cost of the others
    before = mb()
    watchers = await asyncio.to_thread(prepare, rig, sockets)
    started = time.monotonic()
    tasks: list[asyncio.Task[None]] = []
    for at in range(0, sockets, 50):
        tasks += await opened(rig, watchers[at : at + 50])
    seconds = time.monotonic() - started
    spent = web.cpu_times()
    await asyncio.sleep(10)
    now = web.cpu_times()
    cpu = (now.user + now.system - spent.user - spent.system) * 10
    with_all = mb()
    for task in (*warm, *tasks):
        task.cancel()
    await asyncio.gather(*warm, *tasks, return_exceptions=True)
    return [
        f"{sockets}",
        f"{before:.0f}",
        f"{with_all:.0f}",
        f"{with_all - before:.0f}",
        f"{cpu:.0f} %",
        f"{seconds:.0f}",
    ]


def run(dialogs: int, tokens: int, ramp: float) -> Outcome:
    """One run of so many streams by one worker."""
    with rig(concurrency=dialogs + 20, tokens=tokens) as running:
        warm_up(running)
        return asyncio.run(stream(running, dialogs, tokens, ramp, ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialogs", default="50,100,300")
    parser.add_argument("--tokens", type=int, default=750, help="of each answer, at 25 a second")
    parser.add_argument("--ramp", type=float, default=0.07, help="seconds between two messages")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kill", default="", help=f"some of {','.join(KILLS)}")
    parser.add_argument("--idle", type=int, default=0, help="so many sockets on which nothing happens")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.dialogs.split(",") if size != "0"]
    concurrency = max(sizes, default=10) // asked.workers + 20
    outcomes, idles = [], []
    with rig(workers=asked.workers, concurrency=concurrency, tokens=asked.tokens) as running, progress() as bar:
        runs = [(size, kill) for size in sizes for kill in asked.kill.split(",")]
        task = bar.add_task("streaming", total=len(runs))
        warm_up(running)
        for size, kill in runs:
            outcomes.append(asyncio.run(stream(running, size, asked.tokens, asked.ramp, kill)))
            bar.advance(task)
        if asked.idle:
            idles.append(asyncio.run(idle(running, asked.idle)))
    head = ["dialogs", "ended", "answers not equal", "draft characters only seen at the commit", "tokens seen live"]
    head += ["age p50 / p95 / p99, ms", "seconds of all", "age while all", "send to first token", "POST", "seconds"]
    if outcomes:
        report(
            f"## Streams of 25 tokens a second ({load()}; {asked.tokens} tokens each, one message each {asked.ramp:g} "
            f"s, {asked.workers} worker)\n\n" + table(head, [result.row() for result in outcomes])
        )
    for result in outcomes:
        if not result.kill:
            processes = table(["process", "CPU of one core", "memory, MB"], result.processes)
            report(f"{result.dialogs} dialogs:\n\n{processes}")
    if killed := [recovery_row(result) for result in outcomes if result.kill]:
        head = ["killed", "dialogs that went on", "s, median", "s, most", "ended", "answers not equal"]
        report(f"## A part dies ({load()})\n\n" + table(head, killed))
    if idles:
        head = ["idle sockets", "MB before", "MB with them", "extra", "CPU of one core", "s to open"]
        report(f"## Idle sockets ({load()})\n\n" + table(head, idles))


if __name__ == "__main__":
    main()
