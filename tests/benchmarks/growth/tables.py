"""What pages and turns cost in an installation that has grown: ``python -m tests.benchmarks.growth``.

Cost is processor time, of the thread that answers and of the connection's server process;
wall times of a busy machine say little.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.growth.meter import Cost, Meter, sizes
from tests.benchmarks.growth.requests import requests
from tests.benchmarks.growth.seeding import TABLES, Size, seed
from tests.benchmarks.rig import NO_LIMITS, _llm_yaml, load, model_server, report, table
from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer
from tests.harness.stack import ROOT

FLAT, LOGARITHMIC = 1.3, 2.0
SMALL, FULL = Size(1_000, 10_000, 10), Size(100_000, 1_000_000, 1_000)


@contextmanager
def surroundings(database: str) -> Iterator[None]:
    """Redis, a provider and Django in this process."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory()))
        redis = RedisServer().start()
        opened.callback(redis.remove)
        _, model_url = opened.enter_context(model_server("--tokens", "100", "--answer-chars", "400"))
        (folder / "minds").mkdir()
        (folder / "minds" / "llm.yaml").write_text(_llm_yaml(model_url))
        os.environ |= {
            **NO_LIMITS,
            "DJANGO_SETTINGS_MODULE": "dominds.settings",
            "DATABASE_URL": database,
            "REDIS_URL": redis.url,
            "DOMINDS_DATA_DIR": str(folder / "data"),
            "DOMINDS_MINDS_DIR": str(folder / "minds"),
            "DOMINDS_LOG_LEVEL": "ERROR",
            "ALLOWED_HOSTS": "testserver,localhost",
            "DOMINDS_HTTPS": "false",
        }
        import django

        django.setup()
        yield


def measure(database: str, size: Size, only: str) -> dict[str, Any]:
    """Run in a process of its own."""
    with surroundings(database):
        from django.core.management import call_command
        from django.db import DatabaseError

        from dialogs.models import Dialog

        call_command("migrate", verbosity=0)
        if not Dialog.objects.exists():
            begun = time.monotonic()
            seed(size)
            print(f"{size} seeded in {time.monotonic() - begun:.0f} s", file=sys.stderr)
        meter, result = Meter(), {}
        for name, act in requests(size.turns):
            if re.search(only, name):
                try:
                    result[name] = asdict(meter.measured(act))
                except (AssertionError, DatabaseError) as error:  # what takes longer than any request may
                    print(f"{name}: {error}"[:300], file=sys.stderr)
                    continue
                print(f"{name}: {result[name]}", file=sys.stderr)
        return {"costs": result, "sizes": sizes()}


def verdict(small: Cost, full: Cost) -> str:
    times = full.processor / small.processor
    return "flat" if times <= FLAT else "logarithmic" if times <= LOGARITHMIC else "**grows**"


def rows_of(small: Mapping[str, Cost], full: Mapping[str, Cost]) -> list[list[str]]:
    def cells(cost: Cost) -> list[str]:
        return [f"{cost.statements}", f"{cost.here:.1f} + {cost.database:.1f}", f"{cost.rows:,}"]

    return [
        [
            name,
            *cells(small[name]),
            *cells(cost),
            f"{cost.processor / small[name].processor:.1f}",
            verdict(small[name], cost),
        ]
        for name, cost in full.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=["small", "full"], help="measure one size in this process, as JSON")
    parser.add_argument("--database", default="", help="address of an empty database, or of one that was seeded before")
    parser.add_argument("--only", default="", help="what has this expression in its name")
    parser.add_argument("--full", default="", help="TURNS,DIALOGS,PEOPLE in place of 100000,1000000,1000")
    asked = parser.parse_args()
    sized = {"small": SMALL, "full": Size(*map(int, asked.full.split(","))) if asked.full else FULL}
    if asked.one:
        print(json.dumps(measure(asked.database, sized[asked.one], asked.only)))
        return
    server = PostgresServer().start()
    figures: dict[str, Any] = {}
    try:
        for name in sized:
            address = server.create_database(name)
            command = [sys.executable, "-m", "tests.benchmarks.growth", "--one", name, "--database", address]
            options = ["--only", asked.only, "--full", asked.full]
            done = subprocess.run([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            figures[name] = json.loads(done.stdout.splitlines()[-1])
            server.execute(f'DROP DATABASE "{name}"')
    finally:
        server.remove()
    costs = [{name: Cost(**cost) for name, cost in figures[size]["costs"].items()} for size in sized]
    head = ["what", *["statements", "ms here + in the database", "rows"] * 2, "times", "verdict"]
    report(f"## Growth ({load()}; {sized['small']} and {sized['full']})\n\n" + table(head, rows_of(*costs)))
    megabytes = [[name, *(f"{figures[size]['sizes'].get(name, 0) / 1e6:,.1f}" for size in sized)] for name in TABLES]
    report(table(["table, MB", "small", "full"], megabytes))
