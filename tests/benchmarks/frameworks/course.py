"""One message from question to stored answer: Dominds from the POST,
frameworks from the call in their own process, and the floor.

``make frameworks``, or ``python -m tests.benchmarks.frameworks [--depths 1,100,500] [--rounds 60] [--window-rounds
120]``. One PostgreSQL with fsync, a database for each; one model server on loopback that streams 400 characters at
once; 100 characters are asked. All take turns, a message each, so that a noisy minute is everybody's. Depth counts
answered messages; "window" sends the newest 40 turns of them, and Dominds what its retention policy keeps of a window
of 8,000 tokens, its rewrites included.

wall     a framework's from the call to its return, when all is stored; Dominds' from the POST until the row is idle
CPU      of all processes that take part, from the first message to the last, less what they take at rest, and of
         PostgreSQL's that serve their database (not of those that write for all). Of Dominds the web process, worker,
         sweeper and Redis; of a framework the process that calls it; not the model server's, nor the client's
stored   growth of the tables and indexes, divided by the messages; pages have 8 kB, so small figures are 10 % off

What a framework needs beside itself to be reached by people (a web server, a queue, sockets) is not in its figures.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any, Protocol
from uuid import UUID, uuid4

import httpx2
import psycopg

from tests.benchmarks.frameworks.adapter import MODEL
from tests.benchmarks.overhead import WINDOW, Product, conninfo
from tests.benchmarks.rig import Rig, load, progress, report, rig, table
from tests.benchmarks.seeding import ANSWER_CHARS, USER_CHARS, dialog_at, text_of
from tests.harness.postgres import PostgresServer
from tests.harness.stack import ROOT

FRAMEWORKS = {
    "pydantic_ai": "pydantic-ai",
    "langgraph": "LangGraph",
    "openai_agents": "OpenAI Agents SDK",
    "google_adk": "Google ADK",
}
INSTALLED = ROOT / "var" / "frameworks"
WARM_UP = 3  # messages of each dialog that are not counted
SETTLE_SECONDS = 0.02  # so that what one does after the answer is stored takes nothing of the next one's time
REST_SECONDS = 5.0


class Contestant(Protocol):
    name: str
    database: str
    models: tuple[str, ...]  # that nobody else asks at the same time

    def begin(self, depth: int, window: int | None) -> UUID:
        """Return a new conversation after so many answered messages."""

    def ask(self, dialog: UUID, text: str, window: int | None) -> float:
        """Ask one message and return the milliseconds until its answer is stored."""

    def processes(self) -> list[int]:
        """Return the ids of all processes that take part, but for PostgreSQL's."""


@dataclass
class Dominds:
    rig: Rig
    product: Product
    name: str = "**Dominds**"
    database: str = "bench"
    models: tuple[str, ...] = ("prose-whole", "prose-small")

    def begin(self, depth: int, window: int | None) -> UUID:
        model = ("prose-whole", "none") if window is None else ("prose-small", "retention")
        dialog_id: UUID = dialog_at(depth, self.rig.agent(*model), self.rig.people(1)[0]).pk
        return dialog_id

    def ask(self, dialog: UUID, text: str, window: int | None) -> float:
        taken = self.product.exchange(dialog, text)[0] * 1000
        newest = "SELECT text FROM dialogs_turn WHERE dialog_id = %s ORDER BY seq DESC LIMIT 1"
        answer = self.product.rows.execute(newest, (dialog,)).fetchone()[0]
        assert len(answer) == ANSWER_CHARS, f"{self.name} answered {answer!r}"
        return taken

    def processes(self) -> list[int]:
        redis = self.rig.stack.redis.process
        assert redis is not None
        return [redis.pid, *(pid for part in self.rig.stack.parts for pid in (part.pid, *children(part.pid)))]


@dataclass
class Adapter:
    """A process that speaks the lines of ``adapter.py``."""

    name: str
    database: str
    process: "subprocess.Popen[str]"
    versions: list[str] = field(default_factory=list)
    models: tuple[str, ...] = (MODEL,)

    def tell(self, **line: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"{self.name} ended with {self.process.wait()}"
        message: dict[str, Any] = json.loads(line)
        return message

    def begin(self, depth: int, window: int | None) -> UUID:
        dialog = uuid4()
        self.tell(dialog=str(dialog), depth=depth)
        return dialog

    def ask(self, dialog: UUID, text: str, window: int | None) -> float:
        message = self.tell(dialog=str(dialog), text=text, window=window)
        assert len(message["answer"]) == ANSWER_CHARS, f"{self.name} answered {message['answer']!r}"
        return float(message["ms"])

    def processes(self) -> list[int]:
        return [self.process.pid]


@contextmanager
def adapter(postgres: PostgresServer, model_url: str, module: str, name: str, python: Path | str) -> Iterator[Adapter]:
    database = f"of_{module}"
    postgres.create_database(database)
    servers = ["--socket", str(postgres.folder), "--database", database, "--model-url", f"{model_url}/v1"]
    process = subprocess.Popen(
        [python, "-m", f"tests.benchmarks.frameworks.{module}", *servers],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(INSTALLED), "NO_PROXY": "*"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        result = Adapter(name, database, process)
        result.versions = result.hear()["versions"]
        yield result
    finally:
        process.kill()
        process.wait()


# -- Measuring ---------------------------------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processor_ns(pids: list[int]) -> dict[int, int]:
    """Of each living process, with all threads that it ever had: the kernel's clock of another
    process has nanoseconds."""
    result = {}
    for pid in pids:
        try:
            result[pid] = time.clock_gettime_ns(~pid << 3 | 2)
        except OSError:  # it ended meanwhile
            continue
    return result


@dataclass
class Measured:
    wall: list[float] = field(default_factory=list)  # milliseconds
    messages: list[int] = field(default_factory=list)  # of all requests that a message led to
    request_bytes: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    processor: float = 0.0  # milliseconds a message
    stored: float = 0.0  # bytes a message


@dataclass
class Course:
    """What all run, a message each in turn."""

    rig: Rig
    contestants: list[Contestant]
    looking: "psycopg.Connection[Any]"  # not to be counted
    http: httpx2.Client
    at_rest: list[float] = field(default_factory=list)  # milliseconds of processor a second, of each contestant

    def rest(self) -> None:
        self._vacuum()
        spent = self._processor()
        time.sleep(REST_SECONDS)
        self.at_rest = [ms / REST_SECONDS for ms in self._since(spent)]

    def run(self, depth: int, rounds: int, window: int | None, advance: Callable[[], None]) -> list[Measured]:
        dialogs = [each.begin(depth, window) for each in self.contestants]
        self._vacuum()
        results = [Measured() for _ in self.contestants]
        for number in range(-WARM_UP, rounds):
            text = text_of(USER_CHARS, depth + WARM_UP + number + 1)
            if number == 0:
                sizes, spent, began = self._sizes(), self._processor(), time.perf_counter()
            for each, dialog, into in zip(self.contestants, dialogs, results, strict=True):
                self._ask(each, dialog, text, window, into if number >= 0 else Measured())
            advance()
        seconds = time.perf_counter() - began
        for into, ms, rest, before, after in zip(
            results, self._since(spent), self.at_rest, sizes, self._sizes(), strict=True
        ):
            into.processor = (ms - rest * seconds) / rounds
            into.stored = (after - before) / rounds
        return results

    def _ask(self, each: Contestant, dialog: UUID, text: str, window: int | None, into: Measured) -> None:
        into.wall.append(each.ask(dialog, text, window))
        time.sleep(SETTLE_SECONDS)
        sent = self.http.get(f"{self.rig.model_url}/asked").json()
        requests = [request for model, requests in sent.items() if model in each.models for request in requests]
        into.messages.append(sum(messages for messages, _ in requests))
        into.request_bytes.append(sum(size for _, size in requests))
        into.requests.append(len(requests))

    def _vacuum(self) -> None:
        """Everybody's rows that were stored in bulk, so that no autovacuum does it in the middle
        of somebody's message."""
        for each in self.contestants:
            with psycopg.connect(conninfo(self.rig), dbname=each.database, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")

    def _processor(self) -> list[dict[int, int]]:
        """Nanoseconds by process, of each contestant."""
        serving = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        results = []
        for each in self.contestants:
            backends = [pid for (pid,) in self.looking.execute(serving, (each.database,))]
            results.append(processor_ns([*each.processes(), *backends]))
        return results

    def _since(self, before: list[dict[int, int]]) -> list[float]:
        return [
            sum(ns - then.get(pid, 0) for pid, ns in now.items()) / 1e6
            for then, now in zip(before, self._processor(), strict=True)
        ]

    def _sizes(self) -> list[int]:
        """Bytes of all rows and indexes, but for the maps of free pages that come with a first vacuum."""
        tables = "SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        toasts = f"SELECT reltoastrelid FROM pg_class WHERE oid IN ({tables})"
        indexes = f"SELECT indexrelid FROM pg_index WHERE indrelid IN ({tables} UNION {toasts})"
        every = f"SELECT sum(pg_relation_size(oid)) FROM ({tables} UNION {toasts} UNION {indexes}) AS every"
        return [self._of_database(each, every) for each in self.contestants]

    def _of_database(self, each: Contestant, query: str) -> int:
        with psycopg.connect(conninfo(self.rig), dbname=each.database, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


# -- Telling -----------------------------------------------------------------------------------------------------------

HEAD = [
    "",
    "wall, median",
    "mean",
    "p99",
    "x floor",
    "CPU",
    "x floor",
    "stored, bytes",
    "x floor",
    "requests",
    "messages sent",
    "kB sent",
]


def row(name: str, value: Measured, floor: Measured) -> list[str]:
    most = sorted(value.wall)[min(len(value.wall) - 1, int(0.99 * len(value.wall)))]
    return [
        name,
        f"{median(value.wall):.1f}",
        f"{mean(value.wall):.1f}",
        f"{most:.0f}",
        f"{median(value.wall) / median(floor.wall):.1f}",
        f"{value.processor:.1f}",
        f"{value.processor / floor.processor:.1f}",
        f"{value.stored:,.0f}",
        f"{value.stored / max(1.0, floor.stored):.1f}",
        f"{mean(value.requests):.2f}",
        f"{mean(value.messages):,.0f}",
        f"{mean(value.request_bytes) / 1000:,.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--depths", default="1,100,500", help="whole history; the window is measured from the second on"
    )
    parser.add_argument("--rounds", type=int, default=60, help="messages of each with the whole history")
    parser.add_argument("--window-rounds", type=int, default=120, help="messages of each with a window")
    parser.add_argument("--only", default=",".join(FRAMEWORKS), help="frameworks beside the floor and Dominds")
    asked = parser.parse_args()
    depths = [int(depth) for depth in asked.depths.split(",")]
    chosen = [name for name in asked.only.split(",") if name]
    if missing := [name for name in chosen if name not in FRAMEWORKS or not (INSTALLED / name / "installed").exists()]:
        parser.error(f"{', '.join(missing)}: not installed; `make frameworks` does it for {', '.join(FRAMEWORKS)}")
    runs: list[tuple[int, int | None, int]] = [(depth, None, asked.rounds) for depth in depths]
    runs += [(depth, WINDOW, asked.window_rounds) for depth in depths[1:]]
    with rig(answer_chars=ANSWER_CHARS) as running, ExitStack() as opened, progress() as bar:
        from django.db import connection
        from redis import Redis

        looking = opened.enter_context(psycopg.connect(conninfo(running), autocommit=True))
        api = running.stack.api_as(running.people(1)[0])
        product = Product(running, api, looking, Redis.from_url(running.stack.redis.url))
        pythons = {"floor": sys.executable, **{name: INSTALLED / name / "bin" / "python" for name in chosen}}
        floor, *others = (
            opened.enter_context(adapter(running.postgres, running.model_url, name, FRAMEWORKS.get(name, name), python))
            for name, python in pythons.items()
        )
        course = Course(running, [floor, Dominds(running, product), *others], looking, httpx2.Client(trust_env=False))
        report(f"## Frameworks ({load()})\n")
        course.rest()
        for depth, window, rounds in runs:
            named = f"depth {depth:,}, " + ("whole history" if window is None else f"window of {window} turns")
            task = bar.add_task(named, total=rounds + WARM_UP)
            result = course.run(depth, rounds, window, partial(bar.advance, task))
            rows = [row(each.name, of, result[0]) for each, of in zip(course.contestants, result, strict=True)]
            report(f"{named}, {rounds} messages each ({load()}):\n\n" + table(HEAD, rows))
        at_rest = ", ".join(f"{of.name} {ms:.1f}" for of, ms in zip(course.contestants, course.at_rest, strict=True))
        report(f"CPU at rest, ms a second: {at_rest}. Wall and CPU above are ms.")
        report("Versions: " + "; ".join(", ".join(each.versions) for each in others) + ".")
        connection.close()
