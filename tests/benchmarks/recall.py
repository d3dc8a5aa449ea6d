"""What recall adds to a message of a long dialog: ``python -m tests.benchmarks.recall``.

A dialog with so many turns out of sight, and messages that ask for one of them each. "First" is the first message in a
process, after which a thread indexes the whole dialog. Every message is preceded by a new turn, as in life: what is
read and indexed for it counts.
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.rig import load, report, table
from tests.harness.postgres import PostgresServer

RECALLED_TOKENS = 4_096
HEAD = [
    "database",
    "turns",
    "first, ms",
    "of it processor, ms",
    "whole after, s",
    "p50, ms",
    "p95, ms",
    "of it processor, ms",
    "aim, ms",
]
WORDS = (
    "parser refund customer retry config billing amount invoice ledger worker lease queue timeout cursor index "
    "migration socket frame window budget rewrite archive summary reminder question answer provider usage level "
    "threshold"
).split()


def text(rng: Random, number: int) -> str:
    answer = " ".join(rng.choice(WORDS) + (str(rng.randrange(99_999)) if rng.random() < 0.2 else "") for _ in range(70))
    return f"Case {number} of {answer}."


def turns(dialog: Any, first: int, last: int, rng: Random) -> Iterator[Any]:
    from dialogs.models import Turn

    for n in range(first, last + 1):
        role, status = ("user", "answered") if n % 2 else ("assistant", "complete")
        yield Turn(dialog=dialog, seq=n, position=n, round_number=1, role=role, status=status, text=text(rng, n))


def measured(depth: int, messages: int) -> list[str]:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection

    from dialogs.context.retrieval.text_index import TURNS
    from dialogs.models import Agent, Dialog, Turn
    from remediation.recall.query import Query
    from remediation.recall.recall import Allowance, InSight, recall
    from remediation.tokens.counting import counter_for

    call_command("migrate", verbosity=0)
    agent = Agent.objects.create(id="a", name="A", provider="p", model="m")
    dialog = Dialog.objects.create(owner=User.objects.create(username="ann"), agent=agent)
    rng, count = Random(1), counter_for("gpt-4o").count
    Turn.objects.bulk_create(turns(dialog, 1, depth, rng), batch_size=2_000)

    def recalls_whole(seq: int) -> bool:
        """Whether the whole dialog was there to be found."""
        asked = Query(
            f"What became of case {rng.randrange(depth)}, the {rng.choice(WORDS)} and the {rng.choice(WORDS)}?"
        )
        in_sight = range(seq - 40, seq + 1)
        with TURNS.at_once(dialog.pk, in_sight, ()) as index:
            result = recall(index, asked, InSight(in_sight), Allowance(RECALLED_TOKENS, count))
            assert result.found
            return index.corpus.entries >= depth

    begun, at = time.perf_counter(), time.thread_time()
    is_whole = recalls_whole(depth)
    first = ((time.perf_counter() - begun) * 1000, (time.thread_time() - at) * 1000)
    while not is_whole:
        time.sleep(0.2)
        is_whole = recalls_whole(depth)
    whole = time.perf_counter() - begun
    wall, processor = [], []
    for seq in range(depth + 1, depth + 1 + messages):
        Turn.objects.bulk_create(turns(dialog, seq, seq, rng))
        at = time.process_time()
        begun = time.perf_counter()
        recalls_whole(seq)
        wall.append((time.perf_counter() - begun) * 1000)
        processor.append((time.process_time() - at) * 1000)
    warm = wall[5:]
    cells = (median(warm), quantiles(warm, n=20)[18], median(processor[5:]))
    texts = (f"{first[0]:.0f}", f"{first[1]:.0f}", f"{whole:.1f}")
    return [connection.vendor, f"{depth:,}", *texts, *(f"{cell:.1f}" for cell in cells), "5"]


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'recall.sqlite3'}"
        return
    server = PostgresServer()
    server.start()
    try:
        yield server.url("postgres")
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", choices=["sqlite", "postgresql"])
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--messages", type=int, default=105)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder, database(asked.database, Path(folder)) as url:
        os.environ |= {"DATABASE_URL": url, "DOMINDS_DATA_DIR": folder, "SECRET_KEY": "benchmark"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "dominds.settings"
        import django

        django.setup()
        report(f"## Recall ({load()})\n\n" + table(HEAD, [measured(asked.turns, asked.messages)]))


if __name__ == "__main__":
    main()
