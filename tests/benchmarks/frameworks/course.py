"""One message from question to stored answer: Dominds from the POST,
frameworks from the call in their own process, and the floor.

``make frameworks``, or ``python -m tests.benchmarks.frameworks [--depths 1,100,500] [--rounds 60] [--window-rounds
120]``. One PostgreSQL with fsync, a database for each; one model server on loopback that streams 400 characters at
once; 100 characters are asked. All take turns, a message each, so that a noisy minute is everybody's. Depth counts
answered messages; "window" sends the newest 40 turns of them, and Dominds what its policy keeps of a window of 8,000
tokens, with its rewrites and what it recalls.

wall     a framework's from the call to its return, when all is stored; Dominds' from the POST until the row is idle
CPU      of all processes that take part, from each message to the next that they get, less what they take at rest, and
         of PostgreSQL's that serve their database (not of those that write for all). Of Dominds the web process,
         worker, sweeper and Redis; of a framework the process that calls it; not the model server's, nor the client's
stored   growth of the tables and indexes, divided by the messages; pages have 8 kB, so small figures are 10 % off

With a window two more dialogs of Dominds take part, one that sends 40 turns and all since without a policy and one
without recall: by what they differ, the parts of a turn are told. Before, all rest until the vectors of what is out of
sight are made, so that recall compares meanings where MiniLM is installed; what that took is told apart. After the
run, further messages are answered by words alone.

What a framework needs beside itself to be reached by people (a web server, a queue, sockets) is not in its figures.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
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
from tests.benchmarks.frameworks.meter import Measured, Meter
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
WORDS_MESSAGES = 20  # whose recall goes by words alone
QUIET_SECONDS, MOST_SECONDS = 4, 180  # of a rest: without work, and in all
QUIET_MS = 20.0  # of processor in a second, beyond what is done at rest


class Contestant(Protocol):
    name: str
    database: str
    models: tuple[str, ...]  # that nobody else asks at the same time

    def begin(self, depth: int, window: int | None) -> UUID:
        """Return a new conversation after so many answered messages."""

    def ask(self, dialog: UUID, text: str, window: int | None) -> float:
        """Ask one message and return the milliseconds until its answer is stored."""

    def processes(self) -> dict[int, str]:
        """Return the ids of all processes that take part, but for PostgreSQL's, each with its kind."""


@dataclass
class Dominds:
    """One dialog of Dominds, which sends the newest turns of a window where it has no policy."""

    rig: Rig
    product: Product
    name: str = "**Dominds**"
    policy: str = "none"
    recalls: bool = False
    database: str = "bench"
    models: tuple[str, ...] = ("prose-whole", "prose-small")

    def begin(self, depth: int, window: int | None) -> UUID:
        has_policy = self.policy != "none"
        agent = self.rig.agent("prose-small" if has_policy else "prose-whole", self.policy)
        if not self.recalls:
            agent.pk, agent.recall = f"{agent.pk}-silent", False
            agent.save()
        dialog_id: UUID = dialog_at(depth, agent, self.rig.people(1)[0], None if has_policy else window).pk
        return dialog_id

    def ask(self, dialog: UUID, text: str, window: int | None) -> float:
        taken = self.product.exchange(dialog, text)[0] * 1000
        newest = "SELECT text FROM dialogs_turn WHERE dialog_id = %s ORDER BY seq DESC LIMIT 1"
        answer = self.product.rows.execute(newest, (dialog,)).fetchone()[0]
        assert len(answer) == ANSWER_CHARS, f"{self.name} answered {answer!r}"
        return taken

    def processes(self) -> dict[int, str]:
        redis, parts = self.rig.stack.redis.process, self.rig.stack.parts
        assert redis is not None
        return {pid: part.name for part in parts for pid in (part.pid, *children(part.pid))} | {redis.pid: "Redis"}


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

    def processes(self) -> dict[int, str]:
        return {self.process.pid: self.name}


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


@dataclass
class Course:
    """What all run, a message each in turn."""

    rig: Rig
    meters: dict[str, Meter]  # by database: who share one take turns at its processes
    http: httpx2.Client

    def rest(self) -> None:
        for meter in self.meters.values():
            self._vacuum(meter.database)
            meter.rest(REST_SECONDS)

    def begin(self, contestants: list[Contestant], depth: int, window: int | None) -> list[UUID]:
        """Return a new dialog for each, which has answered the messages that are not counted."""
        dialogs = [each.begin(depth, window) for each in contestants]
        for database in self.meters:
            self._vacuum(database)
        self.ask(contestants, dialogs, range(depth, depth + WARM_UP), window, lambda: None)
        return dialogs

    def run(
        self,
        contestants: list[Contestant],
        dialogs: list[UUID],
        numbers: range,
        window: int | None,
        advance: Callable[[], None],
    ) -> list[Measured]:
        """Ask messages of these numbers, and measure what they store as well."""
        before = {database: self._size(database) for database in self.meters}
        results = self.ask(contestants, dialogs, numbers, window, advance)
        databases = [each.database for each in contestants]
        for database, into in zip(databases, results, strict=True):
            grown = self._size(database) - before[database]
            into.stored = grown / len(numbers) / databases.count(database)
        return results

    def ask(
        self,
        contestants: list[Contestant],
        dialogs: list[UUID],
        numbers: Iterable[int],
        window: int | None,
        advance: Callable[[], None],
    ) -> list[Measured]:
        """Ask messages of these numbers. What is done after an answer is charged to it, until the same processes get
        the next message."""
        results = [Measured() for _ in contestants]
        asked: dict[str, Measured] = {}  # last, by database
        for number in numbers:
            for place, (each, dialog, into) in enumerate(zip(contestants, dialogs, results, strict=True)):
                text = text_of(USER_CHARS, number * 10 + place)  # no two alike, or vectors would be remembered
                self._charge(each.database, asked.get(each.database))
                asked[each.database] = into
                self._ask(each, dialog, text, window, into)
            advance()
        for database, into in asked.items():
            self._charge(database, into)
        return results

    def _charge(self, database: str, into: Measured | None) -> None:
        spent, by_process = self.meters[database].read()
        if into is not None:
            into.processor.append(spent)
            into.by_process.update(by_process)

    def rested(self, database: str) -> float:
        """Wait until nothing is done any more, and return the milliseconds of processor until then."""
        meter, result, quiet = self.meters[database], 0.0, 0
        for _ in range(MOST_SECONDS):
            spent, _ = meter.read()
            result += spent
            quiet = quiet + 1 if spent < QUIET_MS else 0
            if quiet == QUIET_SECONDS:
                break
            time.sleep(1)
        return result

    def _ask(self, each: Contestant, dialog: UUID, text: str, window: int | None, into: Measured) -> None:
        into.wall.append(each.ask(dialog, text, window))
        time.sleep(SETTLE_SECONDS)
        sent = self.http.get(f"{self.rig.model_url}/asked").json()
        requests = [request for model, requests in sent.items() if model in each.models for request in requests]
        into.messages.append(sum(messages for messages, _ in requests))
        into.request_bytes.append(sum(size for _, size in requests))
        into.requests.append(len(requests))

    def _vacuum(self, database: str) -> None:
        """Everybody's rows that were stored in bulk, so that no autovacuum does it in the middle
        of somebody's message."""
        with psycopg.connect(conninfo(self.rig), dbname=database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def _size(self, database: str) -> int:
        """Bytes of all rows and indexes, but for the maps of free pages that come with a first vacuum."""
        tables = "SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        toasts = f"SELECT reltoastrelid FROM pg_class WHERE oid IN ({tables})"
        indexes = f"SELECT indexrelid FROM pg_index WHERE indrelid IN ({tables} UNION {toasts})"
        every = f"SELECT sum(pg_relation_size(oid)) FROM ({tables} UNION {toasts} UNION {indexes}) AS every"
        with psycopg.connect(conninfo(self.rig), dbname=database, autocommit=True) as connection:
            row = connection.execute(every).fetchone()
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
        f"{mean(value.processor):.1f}",
        f"{mean(value.processor) / mean(floor.processor):.1f}",
        f"{value.stored:,.0f}",
        f"{value.stored / max(1.0, floor.stored):.1f}",
        f"{mean(value.requests):.2f}",
        f"{mean(value.messages):,.0f}",
        f"{mean(value.request_bytes) / 1000:,.1f}",
    ]


PLAIN, SILENT = "Dominds, 40 turns and all since", "Dominds, retention without recall"
RETENTION, BREAKING = "**Dominds**, retention", "**Dominds**, breaking"


def by_process(results: dict[str, Measured]) -> str:
    ours = {name: of for name, of in results.items() if "Dominds" in name}
    kinds = list(dict.fromkeys(kind for of in ours.values() for kind in of.by_process))
    rows = [[name, *(f"{of.by_process[kind] / 1e6 / len(of.wall):.1f}" for kind in kinds)] for name, of in ours.items()]
    return table(["CPU by process, with what it takes at rest", *kinds], rows)


def by_part(results: dict[str, Measured], by_words: Measured) -> str:
    """Split a turn under retention by what the dialogs that lack a part do without."""
    plain, silent, whole = (median(results[name].processor) for name in (PLAIN, SILENT, RETENTION))
    words, every = median(by_words.processor), mean(results[RETENTION].processor)
    parts = {
        "a turn without a policy": plain,
        "figures: what is counted, and decided by it": silent - plain,
        "recall by words": words - silent,
        "recall by meaning beside them": whole - words,
        "rewrites, and what else is rare: mean less median": every - whole,
    }
    rows = [[name, f"{ms:.1f}", f"{100 * ms / every:.0f} %"] for name, ms in parts.items()]
    return table(["CPU by part, retention", "ms", "share"], rows)


def rest_of_all(course: Course) -> str:
    """Say what is done while all dialogs of Dominds rest."""
    count = "SELECT count(*) FROM dialogs_turnvectors"
    with psycopg.connect(conninfo(course.rig), autocommit=True) as connection:
        before = connection.execute(count).fetchone() or (0,)
        spent = course.rested(Dominds.database)
        after = connection.execute(count).fetchone() or (0,)
    made = after[0] - before[0]
    return f"While all rested, {spent:,.0f} ms of CPU, most of it for the vectors of {made:,} turns out of sight."


@contextmanager
def words_alone(rig: Rig) -> Iterator[None]:
    """Have recall compare no meanings."""
    file = rig.stack.minds_dir / "context.yaml"
    file.write_text("context_config: {relevance: wording}\n")
    yield
    file.unlink()


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
        whole = Dominds(running, product)
        windowed = [
            Dominds(running, product, PLAIN),
            Dominds(running, product, SILENT, "retention"),
            Dominds(running, product, RETENTION, "retention", recalls=True),
            Dominds(running, product, BREAKING, "breaking", recalls=True),
        ]
        metered: tuple[Contestant, ...] = (floor, whole, *others)
        meters = {each.database: Meter(each.name, each.database, each.processes, looking) for each in metered}
        course = Course(running, meters, httpx2.Client(trust_env=False))
        report(f"## Frameworks ({load()})\n")
        course.rest()
        for depth, window, rounds in runs:
            contestants: list[Contestant] = [floor, *([whole] if window is None else windowed), *others]
            named = f"depth {depth:,}, " + ("whole history" if window is None else f"window of {window} turns")
            task = bar.add_task(named, total=rounds)
            dialogs = course.begin(contestants, depth, window)
            resting = rest_of_all(course) if window is not None else ""
            numbers = range(depth + WARM_UP, depth + WARM_UP + rounds)
            measured = course.run(contestants, dialogs, numbers, window, partial(bar.advance, task))
            results = {each.name: of for each, of in zip(contestants, measured, strict=True)}
            rows = [row(name, of, measured[0]) for name, of in results.items()]
            report(f"{named}, {rounds} messages each ({load()}):\n\n" + table(HEAD, rows))
            report(by_process(results))
            if window is not None:
                place = contestants.index(windowed[2])
                further = range(numbers.stop, numbers.stop + WORDS_MESSAGES)
                with words_alone(running):
                    (by_words,) = course.ask([windowed[2]], [dialogs[place]], further, window, lambda: None)
                report(by_part(results, by_words))
                report(resting)
        at_rest = ", ".join(f"{meter.name} {meter.at_rest:.1f}" for meter in meters.values())
        report(f"CPU at rest, ms a second: {at_rest}. Wall and CPU above are ms.")
        report("Versions: " + "; ".join(", ".join(each.versions) for each in others) + ".")
        connection.close()
