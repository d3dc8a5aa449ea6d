"""What it costs to run so many people: the tables of ``docs/costs.md``, made of what was measured.

``python -m tests.benchmarks.costs`` prints them, ``--write`` puts them into the page; a test holds the page against
them. Processor time and memory are read from the table of ``costs.units`` in ``tests/benchmarks/README.md``: after a
new run, lay its table there and write.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from pathlib import Path

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.models.prices import cost_of
from dominds.llm.usage import Usage
from tests.benchmarks.rig import table
from tests.harness.stack import ROOT

PAGE = ROOT / "docs" / "costs.md"
README = ROOT / "tests" / "benchmarks" / "README.md"
PEOPLE = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Parts:
    """Of one thing: milliseconds of CPU, or megabytes, by process."""

    web: float
    worker: float
    redis: float
    database: float

    @property
    def together(self) -> float:
        return self.web + self.worker + self.redis + self.database


def units() -> dict[str, Parts]:
    """The table of that name in the benchmarks' README, by its first column."""
    lines = README.read_text().partition("<!-- units -->\n")[2].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {name: Parts(*map(float, cells[:4])) for name, *cells in rows}


UNITS = units()
MESSAGE, PAGE_OF_IT, OPENED_DIALOG = (
    UNITS["a message, retention"],
    UNITS["the page's part of a message"],
    UNITS["a dialog's page"],
)
OPENING, TOKENS = UNITS["opening a page's socket"], UNITS["1,000 tokens to a page"]
REST, MEMORY = UNITS["rest, a second"], UNITS["memory, MB"]
# The idle sockets and the storage of the same README: of 1,000 sockets 31 MB and a tenth of a core; of a message of 100
# characters with its answer of 400, by retention, all rows and indexes.
IDLE_SOCKET_MS, IDLE_SOCKET_KB = 0.1, 31
STORED_BYTES, STORED_CHARS = 8_200, 500


@dataclass(frozen=True)
class Day:
    """What people are taken to do. Nothing of it was measured."""

    messages: int = 20  # a person a day
    hours: int = 8  # in which they are written
    peak: int = 4  # messages in the busiest minutes, as a multiple of the average of these hours
    days: int = 22  # a month
    page_loads: float = 0.5  # a dialog is opened or loaded anew, for each message
    open_pages: float = 0.4  # of the people, in the busiest minutes
    asked_chars: int = 300
    answered_chars: int = 1_600
    answered_tokens: int = 400
    tokens_per_second: int = 25  # of an answer


DAY = Day()
FILL = 0.5  # of a core, in the busiest minutes: the rest is for what comes in bursts
WORKER_ANSWERS = 1_000  # under way at once in one worker, without a setting
POOL = 16  # DOMINDS_DB_POOL
HOST_CORES = 4


@dataclass(frozen=True)
class Need:
    people: int

    @property
    def messages_per_second(self) -> float:
        """At the peak."""
        return self.people * DAY.messages * DAY.peak / (DAY.hours * 3600)

    @property
    def message(self) -> Parts:
        """Milliseconds of CPU that one message leads to, with what its person looks at."""

        def of(part: str) -> float:
            fixed = sum(getattr(each, part) for each in (MESSAGE, PAGE_OF_IT))
            looked = DAY.page_loads * (getattr(OPENED_DIALOG, part) + getattr(OPENING, part))
            return float(fixed + looked + DAY.answered_tokens / 1000 * getattr(TOKENS, part))

        return Parts(*(of(part) for part in ("web", "worker", "redis", "database")))

    @property
    def sockets(self) -> int:
        return ceil(self.people * DAY.open_pages)

    @property
    def streams(self) -> int:
        """Answers under way at the peak."""
        return ceil(self.messages_per_second * DAY.answered_tokens / DAY.tokens_per_second)

    @property
    def cores(self) -> Parts:
        """Busy at the peak."""
        rate, each, rest = self.messages_per_second, self.message, REST
        web = rate * each.web + self.sockets * IDLE_SOCKET_MS + rest.web
        parts = (
            web,
            rate * each.worker + rest.worker,
            rate * each.redis + rest.redis,
            rate * each.database + rest.database,
        )
        return Parts(*(ms / 1000 for ms in parts))

    @property
    def webs(self) -> int:
        """A process of Python uses one core at most."""
        return ceil(self.cores.web / FILL)

    @property
    def workers(self) -> int:
        return max(ceil(self.cores.worker / FILL), ceil(1.5 * self.streams / WORKER_ANSWERS))

    @property
    def connections(self) -> int:
        """At most, with one sweeper more."""
        return (self.webs + self.workers + 1) * POOL

    @property
    def memory_mb(self) -> float:
        """Of all processes, without PostgreSQL's cache."""
        m = MEMORY
        return self.webs * m.web + self.sockets * IDLE_SOCKET_KB / 1000 + self.workers * m.worker + m.redis + m.database

    @property
    def messages_per_month(self) -> int:
        return self.people * DAY.messages * DAY.days

    @property
    def disk_gb(self) -> float:
        """A month: what was measured, and the longer texts."""
        longer = DAY.asked_chars + DAY.answered_chars - STORED_CHARS
        return self.messages_per_month * (STORED_BYTES + longer) / 1e9


# -- Tokens ------------------------------------------------------------------------------------------------------------

AT = datetime(2026, 12, 1, 12, tzinfo=UTC)  # prices have days and hours
MODELS = (
    ("anthropic", "claude-sonnet-5-5"),
    ("openai", "gpt-6.2-sol"),
    ("google", "gemini-3.8-flash"),
    ("deepseek", "deepseek-flash"),
)
FRAME = 2_000  # tokens of the system prompt and the tools of an agent
ASKED = 75  # tokens of 300 characters
LIMIT = 20_000  # a window that an agent is given
TRIGGER, TARGET = 0.8, 0.5  # of it: when retention rewrites, and to what
RECALLED = 0.095  # of a request after the first rewrite, never read from a cache
SUMMARY = 400  # tokens that a model is asked for at a rewrite
DIALOGS = (100, 400)  # messages in one


@dataclass(frozen=True)
class Call:
    prompt: int
    repeated: int  # tokens of it that the request before began with
    answer: int

    def usage(self, cached: bool, writes: bool) -> Usage:
        new = self.prompt - self.repeated
        if not cached:
            return Usage(self.prompt, self.answer)
        return Usage(
            self.prompt, self.answer, cache_read_tokens=self.repeated, cache_write_tokens=new if writes else None
        )


def whole_history(messages: int) -> Iterator[Call]:
    before, message = 0, 0
    for _ in range(messages):
        prompt = FRAME + message + ASKED
        yield Call(prompt, before, DAY.answered_tokens)
        before, message = prompt, message + ASKED + DAY.answered_tokens


def retention(messages: int) -> Iterator[Call]:
    """By the policy's own figures: above 80 % of the limit to half of it, by a summary that the model writes."""
    before, message, rewritten = 0, 0, False
    for _ in range(messages):
        kept = FRAME + message + ASKED
        if kept > TRIGGER * LIMIT:
            room = int(TARGET * LIMIT) - FRAME - ASKED
            yield Call(message - room, 0, SUMMARY)
            before, message, rewritten = FRAME, room, True
            kept = FRAME + message + ASKED
        recalled = round(kept * RECALLED / (1 - RECALLED)) if rewritten else 0
        yield Call(kept + recalled, before, DAY.answered_tokens)
        before, message = kept, message + ASKED + DAY.answered_tokens


def dollars(model: tuple[str, str], calls: Iterator[Call], cached: bool) -> Decimal:
    """Of one dialog."""
    prices = load_catalog(Path("/nonexistent")).model(*model).prices
    writes = any(price.write is not None for price in prices)
    total = Decimal(0)
    for call in calls:
        cost = cost_of(call.usage(cached, writes), prices, AT)
        assert cost is not None
        total += cost
    return total


# -- Tables ------------------------------------------------------------------------------------------------------------


def assumptions() -> str:
    d = DAY
    return table(
        ["taken for granted", ""],
        [
            ["messages a person a day, within hours, days a month", f"{d.messages}, {d.hours}, {d.days}"],
            ["the busiest minutes, times the average of these hours", f"{d.peak}"],
            [
                "a message and its answer, characters",
                f"{d.asked_chars} and {d.answered_chars:,} ({d.answered_tokens} tokens, {d.tokens_per_second} a "
                "second)",
            ],
            ["pages loaded for each message", f"{d.page_loads}"],
            ["people who have a page open in the busiest minutes", f"{d.open_pages:.0%}".replace("%", " %")],
            ["a core is filled to, in the busiest minutes", f"{FILL:.0%}".replace("%", " %")],
        ],
    )


def unit_figures() -> str:
    named = {
        "a message, stored to stored, with retention": MESSAGE,
        "one open page's part of it": PAGE_OF_IT,
        "a dialog's page": OPENED_DIALOG,
        "opening a page's socket": OPENING,
        "1,000 tokens that stream to a page": TOKENS,
        "at rest, a second": REST,
        "memory, MB": MEMORY,
    }
    cells = [
        [name, *(f"{getattr(of, part):.1f}" for part in ("web", "worker", "redis", "database", "together"))]
        for name, of in named.items()
    ]
    cells.append(["an idle socket", f"{IDLE_SOCKET_MS:g} ms a second, {IDLE_SOCKET_KB:g} kB", "", "", "", ""])
    return table(["ms of CPU", "web", "worker", "Redis", "PostgreSQL", "together"], cells)


def one_machine() -> str:
    needs = [Need(people) for people in PEOPLE]
    rows: list[tuple[str, Callable[[Need], str]]] = [
        ("messages a second, at the peak", lambda n: f"{n.messages_per_second:.2g}"),
        ("CPU of a message with all it leads to, ms", lambda n: f"{n.message.together:.0f}"),
        ("answers under way", lambda n: f"{n.streams:,}"),
        ("open sockets", lambda n: f"{n.sockets:,}"),
        (
            "cores busy: web, worker, Redis, PostgreSQL",
            lambda n: ", ".join(f"{getattr(n.cores, part):.2f}" for part in ("web", "worker", "redis", "database")),
        ),
        ("**cores**", lambda n: f"**{max(2, ceil(n.cores.together / FILL))}**"),
        ("web processes", lambda n: f"{n.webs}"),
        ("workers", lambda n: f"{n.workers}"),
        ("`max_connections` of PostgreSQL", lambda n: f"{n.connections + 10}"),
        ("memory of all processes, GB", lambda n: f"{n.memory_mb / 1000:.1f}"),
        (
            "**memory**, with as much again for the database's cache, GB",
            lambda n: f"**{max(2, ceil(2 * n.memory_mb / 1000))}**",
        ),
        ("messages a month", lambda n: f"{n.messages_per_month:,}"),
        ("**disk** a month, GB", lambda n: f"**{n.disk_gb:.1f}**"),
    ]
    return table(["", *(f"{people:,} people" for people in PEOPLE)], [[name, *map(of, needs)] for name, of in rows])


def several_machines() -> str:
    rows = []
    for need in map(Need, PEOPLE):
        webs, workers = (max(2, ceil(count / HOST_CORES)) for count in (need.webs, need.workers))
        each_web, each_worker = ceil(max(need.webs, webs) / webs), ceil(max(need.workers, workers) / workers)
        connections = (webs * each_web + workers * each_worker + 2) * POOL + 10
        database = max(2, ceil(need.cores.database / FILL))
        rows.append(
            [
                f"{need.people:,}",
                f"{webs} x {each_web}",
                f"{workers} x {each_worker}",
                "2",
                f"{database} cores",
                f"{max(0.01, need.cores.redis):.2f} of a core",
                f"{connections}",
            ]
        )
    head = [
        "people",
        f"web hosts of {HOST_CORES} cores x processes",
        "worker hosts x processes",
        "sweepers",
        "database host",
        "Redis",
        "`max_connections`",
    ]
    return table(head, rows)


WAYS = {"whole history": whole_history, f"retention in {LIMIT:,}": retention}


def tokens() -> str:
    rows = []
    for messages in DIALOGS:
        for name, calls in WAYS.items():
            results = list(calls(messages))
            sent, repeated = sum(call.prompt for call in results), sum(call.repeated for call in results)
            rows.append(
                [
                    f"{messages}",
                    name,
                    f"{sent:,}",
                    f"{max(call.prompt for call in results):,}",
                    f"{100 * repeated / sent:.0f} %",
                    f"{len(results) - messages}",
                ]
            )
    head = [
        "messages in a dialog",
        "",
        "prompt tokens sent",
        "largest prompt",
        "readable from a cache",
        "calls for summaries",
    ]
    return table(head, rows)


def token_costs() -> str:
    rows = []
    for provider, model in MODELS:
        for messages in DIALOGS:
            share = Decimal(DAY.messages * DAY.days) / messages  # of such a dialog, a month
            costs = [
                dollars((provider, model), calls(messages), cached) * share
                for calls in WAYS.values()
                for cached in (False, True)
            ]
            rows.append([f"`{model}`", f"{messages}", *(f"{cost:,.2f}" for cost in costs)])
    ways = [f"{way}{cached}" for way in WAYS for cached in (", no cache", ", cache")]
    return table(["USD a person a month", "messages in a dialog", *ways], rows)


TABLES: dict[str, Callable[[], str]] = {
    "assumptions": assumptions,
    "units": unit_figures,
    "one machine": one_machine,
    "several machines": several_machines,
    "tokens": tokens,
    "token costs": token_costs,
}
BLOCK = re.compile(r"(<!-- table: ([\w ]+) -->\n)(.*?)(<!-- end -->)", re.S)


def filled(page: str) -> str:
    """The page with each table as it is computed now."""
    return BLOCK.sub(lambda value: value[1] + TABLES[value[2]]() + "\n" + value[4], page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"put them into {PAGE.relative_to(ROOT)}")
    if parser.parse_args().write:
        PAGE.write_text(filled(PAGE.read_text()))
    else:
        print("\n\n".join(f"{name}\n\n{of()}" for name, of in TABLES.items()))
