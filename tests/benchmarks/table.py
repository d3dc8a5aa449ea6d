"""What people feel, now against the aim, in one table: ``python -m tests.benchmarks.table [PART ...]``.

Parts: exchange, rewrite, window, page, together, v1, installed, people, streams, faster. All but the streams take about
ten minutes on an idle machine, and these four each: 70 s until all were asked, 80 s of answers, what is late, and the
start. Ratios are to the raw floor of the same minute; see ``overhead``.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import mean, median, quantiles

import psycopg

from tests.benchmarks import fanout, installed, people, retention, together
from tests.benchmarks.frameworks.floor import Floor
from tests.benchmarks.overhead import Product, conninfo
from tests.benchmarks.rig import Rig, load, report, rig, table
from tests.benchmarks.seeding import ANSWER_CHARS

Lines = Iterator[tuple[str, str, str]]  # what, now, aim


@dataclass
class Bench:
    rig: Rig
    floor: Floor
    product: Product
    pages: together.Pages
    cookie: str
    key: str


def exchange(bench: Bench) -> Lines:
    wall, cpu = together.exchange_costs(bench.rig, bench.floor, bench.product, 500, 40)
    stored = together.storage(bench.rig, bench.floor, 400)
    for name, pair, unit, aim in (
        ("wall", wall, "ms", "2.2x"),
        ("processor", cpu, "ms", "4x"),
        ("storage, all rows", stored, "bytes", "2.2x"),
    ):
        yield (
            f"POST to idle, depth 500: {name}",
            f"{pair.ratio:.1f}x ({pair.product:,.1f} of {pair.floor:,.1f} {unit})",
            aim,
        )


def rewrite(bench: Bench) -> Lines:
    for policy, verb in (("retention", "prune"), ("breaking", "break")):
        for units, aim in ((100, "20 ms"), (200, "30 ms"), (400, "50 ms")):
            cold, warm = together.rewrite_millis(bench.rig, policy, verb, units, 5)
            yield (
                f"rewrite without a model, {policy}, {units} units",
                f"{warm:.0f} ms; texts never read before: {cold:.0f}",
                aim,
            )


def window(bench: Bench) -> Lines:
    rng = Random(7)
    messages = [retention.message(rng, number) for number in range(100)]
    for policy in ("retention", "breaking"):
        result = retention.converse(bench.rig, bench.rig.agent("counted-small", policy), messages, lambda: None)
        middle, most = median(result.wall), quantiles(result.wall, n=100)[98]
        yield (
            f"window mode, 100 exchanges, {policy}: mean / median, p99",
            f"{mean(result.wall) / middle:.2f} ({mean(result.wall):.1f} of {middle:.1f} ms), {most:.0f} ms, "
            f"{result.rewrites} rewrites",
            "1.3",
        )
        yield f"window mode, {policy}: processor an exchange", f"{mean(result.processor):.1f} ms", "25 ms"


def page(bench: Bench) -> Lines:
    first, more = together.page_costs(bench.rig, bench.product, bench.pages, bench.cookie, 60)
    yield "an open page: processor an exchange, the first", f"{first:.1f} ms", "7 ms"
    yield "an open page: each more of the same dialog", f"{more:.1f} ms", "1 ms"
    ages = together.end_to_page(bench.rig, bench.product, bench.pages, bench.cookie, 15)
    yield "end of an answer, from commit to socket", f"{median(ages):.0f} ms, most {max(ages):.0f}", "20 ms"
    speed, stall = together.read_long(bench.rig, bench.pages, bench.cookie)
    yield "a page that reads 2,000 turns it missed", f"{speed:.1f} MB/s, longest stall {stall:.2f} s", "1 MB/s, none"


def many(bench: Bench) -> Lines:
    for watched, aim in ((False, "220 ms, 100"), (True, "400 ms, 70")):
        result = [together.all_at_once(bench.rig, bench.product, bench.pages, 50, watched=watched) for _ in range(4)][
            1:
        ]
        name = "with 50 pages" if watched else "without pages"
        yield (
            f"50 messages at once {name}: to idle, turns a second",
            f"{median(one.millis for one in result):.0f} ms, {median(one.per_second for one in result):.0f}",
            aim,
        )


def v1(bench: Bench) -> Lines:
    took, spent = together.v1_calls(bench.rig, bench.key, 40)
    yield "/v1, one call", f"{took:.0f} ms, processor {spent:.0f} ms", "25 ms, 30 ms"


OF_RIG: dict[str, Callable[[Bench], Lines]] = {
    "exchange": exchange,
    "rewrite": rewrite,
    "window": window,
    "page": page,
    "together": many,
    "v1": v1,
}


def default_install() -> Lines:
    with installed.installed() as here:
        yield "idle install: memory (PSS)", f"{here.resting_mb():.0f} MB", "350 MB"
        written, lines = installed.turn_costs(here, 60)
        yield "embedded default: written a turn", f"{written / 1000:.0f} kB", "60 kB"
        millis = installed.line_millis(here)
        yield (
            "log lines at INFO, processor a turn",
            f"{millis * lines:.2f} ms ({lines:.1f} lines of {millis * 1000:.0f} µs)",
            "0.5 ms",
        )
        yield "idle install: ready after", f"{median(installed.start_seconds(here, 3)):.1f} s", "3.5 s"


def fifty_people() -> Lines:
    measured, locked = people.run(50, 45)
    posts = measured.seconds["post"]
    failed = dict(measured.failed) or "none"
    yield (
        "50 people on SQLite: POST p50 / p99",
        f"{people.at(0.5, posts)} / {people.at(0.99, posts)} ms; failed: {failed}, locked: {locked}",
        "p99 1,000 ms",
    )


def streams() -> Lines:
    yield _streaming(0.07, 2_000, "p99 400 ms; 500 ms")


def faster() -> Lines:
    yield _streaming(0.03, 1_000, "p99 500 ms; 500 ms")


def _streaming(ramp: float, tokens: int, aim: str) -> tuple[str, str, str]:
    result = fanout.run(1_000, tokens, ramp)
    return (
        f"1,000 streams x 25 tokens/s, a message each {1000 * ramp:.0f} ms: age; first token (p50 / p95 / p99)",
        f"{fanout.cuts(result.ages)}; {fanout.cuts(result.firsts)} ms; ended: {result.ended}, of them not equal: "
        f"{result.lost}",
        aim,
    )


ALONE: dict[str, Callable[[], Lines]] = {
    "installed": default_install,
    "people": fifty_people,
    "streams": streams,
    "faster": faster,
}


def on_a_rig(parts: list[str]) -> Lines:
    if not parts:
        return
    with rig(answer_chars=ANSWER_CHARS, concurrency=64, tokens=10) as running:
        from django.db import connection
        from redis import Redis

        from dialogs.accounts.api_keys import create_key
        from tests.harness.browser import session_key

        owner, floor = running.people(1)[0], Floor(conninfo(running), f"{running.model_url}/v1")
        rows = psycopg.connect(conninfo(running), autocommit=True)
        product = Product(running, running.stack.api_as(owner), rows, Redis.from_url(running.stack.redis.url))
        bench = Bench(
            running, floor, product, together.Pages(running), session_key(owner), create_key(owner, name="bench")
        )
        fanout.warm_up(running)
        for part in parts:
            yield from OF_RIG[part](bench)
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join([*OF_RIG, *ALONE]))
    asked = parser.parse_args().parts or [*OF_RIG, *ALONE]
    if unknown := set(asked) - {*OF_RIG, *ALONE}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if len(asked) == 1 and asked[0] in ALONE:
        show(ALONE[asked[0]]())
        return
    show(on_a_rig([part for part in asked if part in OF_RIG]))
    for part in asked:
        if part in ALONE:  # in a process of its own: Django's settings know one database
            subprocess.run([sys.executable, "-m", "tests.benchmarks.table", part], check=True)


def show(lines: Lines) -> None:
    results = []
    for line in lines:
        print(*line, sep=" | ", file=sys.stderr, flush=True)
        results.append(line)
    if results:
        report(f"## Now and aim ({load()})\n\n" + table(["what", "now", "aim"], results))


if __name__ == "__main__":
    main()
