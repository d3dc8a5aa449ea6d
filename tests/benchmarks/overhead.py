"""What the product adds to one model call, and what one exchange costs on disk, beside a raw floor in the same run.

``python -m tests.benchmarks.overhead [--rounds N] [--depths 1,100,500,2000]``. PostgreSQL with fsync, a local HTTP
server that answers at once, the whole history sent. Depth counts answered messages: at depth 500 a request holds 1,001
messages.

floor       one connection, one HTTP client: read the rows, send the same body, read the stream, two INSERTs, one commit
in process  ``post_message`` and ``drive`` called one after the other; the worker is woken as well, and finds the
            dialog taken
product     POST to the API, Celery, a worker: from the answer 202 until the row says idle; and with the POST itself
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

from tests.benchmarks.frameworks.floor import Floor
from tests.benchmarks.rig import Rig, load, progress, report, rig, table
from tests.benchmarks.seeding import ANSWER_CHARS, USER_CHARS, dialog_at, text_of

WINDOW = 40  # turns that the model sees of a rewritten dialog
WAIT_SECONDS = 20
PRODUCT_TABLES = (
    "dialogs_dialog",
    "dialogs_turn",
    "dialogs_generation",
    "dialogs_event",
    "health_healthsnapshot",
    "dialogs_round",
)


def conninfo(rig: Rig) -> str:
    return make_conninfo(host=str(rig.postgres.folder), port=5432, user="dominds", dbname="bench")


@dataclass
class Product:
    """The real path. Redis says when to look, the database says whether it is over."""

    rig: Rig
    api: Any
    rows: Any
    redis: Any

    def exchange(self, dialog_id: UUID, text: str) -> tuple[float, float]:
        """Seconds from the POST's beginning, and from its answer, until the dialog is idle."""
        from dialogs.store.wakeups import dialog_channel

        pubsub = self.redis.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe(dialog_channel(dialog_id))
        pubsub.get_message(timeout=1)
        started = time.perf_counter()
        answer = self.api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": text})
        accepted = time.perf_counter()
        assert answer.status_code == 202, answer.text
        while True:
            state = self.rows.execute("SELECT state FROM dialogs_dialog WHERE id = %s", (dialog_id,)).fetchone()[0]
            if state == "idle":
                ended = time.perf_counter()
                pubsub.close()
                return ended - started, ended - accepted
            assert state != "failed", "the dialog failed"
            assert time.perf_counter() - started < WAIT_SECONDS, f"still {state}"
            pubsub.get_message(timeout=0.2)


def in_process(dialog_id: UUID, text: str) -> None:
    from dialogs.actions.messages import post_message
    from dialogs.runtime.driver import drive

    post_message(dialog_id, text)
    drive(dialog_id)


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    started = time.perf_counter()
    yield
    into.append((time.perf_counter() - started) * 1000)


def tools_of(dialog: Any) -> list[Any]:
    """The tools as the product sends them, so that the floor's body is the same."""
    from dialogs.tools.registry import tools_for_dialog
    from dominds.llm.providers.openai_chat import _tool

    return [_tool(tool.spec) for tool in tools_for_dialog(dialog).values()]


Timings = dict[str, list[float]]


def measure(
    rig: Rig, floor: Floor, product: Product, depth: int, rounds: int, window: int | None, advance: Callable[[], None]
) -> Timings:
    agent, owner = rig.agent("quick"), rig.people(1)[0]
    local, remote = (dialog_at(depth, agent, owner, window) for _ in range(2))
    raw, tools, result = floor.dialog_at(depth), tools_of(local), defaultdict[str, list[float]](list)
    for table_name in ("floor", *PRODUCT_TABLES):
        floor.connection.execute(f"ANALYZE {table_name}")
    floor.connection.commit()
    for number in range(rounds + 2):
        into = result if number >= 2 else defaultdict[str, list[float]](list)  # two to warm up
        text = text_of(USER_CHARS, depth + number)
        with timed(into["floor"]):
            floor.exchange(raw, text, window, tools)
        with timed(into["in process"]):
            in_process(local.pk, text)
        total, after_post = product.exchange(remote.pk, text)
        into["product"].append(after_post * 1000)
        into["with POST"].append(total * 1000)
        advance()
    return result


def storage(rig: Rig, floor: Floor, exchanges: int, advance: Callable[[], None]) -> list[tuple[str, float, float]]:
    """Bytes per exchange in three stretches of one dialog, product and floor."""
    dialog, raw = dialog_at(0, rig.agent("quick"), rig.people(1)[0]), floor.dialog_at(0)
    rows, done = [], 0
    for stretch in range(3):
        before, raw_before = floor.size(*PRODUCT_TABLES), floor.size("floor")
        for _ in range(exchanges):
            text = text_of(USER_CHARS, done)
            in_process(dialog.pk, text)
            floor.exchange(raw, text, 1, [])
            done += 1
            advance()
        grown, raw_grown = floor.size(*PRODUCT_TABLES) - before, floor.size("floor") - raw_before
        rows.append((f"{stretch * exchanges + 1:,}–{done:,}", grown / exchanges, raw_grown / exchanges))
    return rows


def timing_rows(value: dict[int, Timings]) -> list[list[str]]:
    rows = []
    for depth, timings in value.items():
        base = median(timings["floor"])
        cells = [f"{median(timings[name]):.1f} ({median(timings[name]) / base:.1f}x)" for name in list(timings)[1:]]
        rows.append([f"{depth:,}", f"{base:.1f}", *cells])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--depths", default="1,100,500,2000")
    parser.add_argument("--exchanges", type=int, default=600, help="per stretch of the storage measurement")
    asked = parser.parse_args()
    depths = [int(depth) for depth in asked.depths.split(",")]
    with rig(answer_chars=ANSWER_CHARS) as running, progress() as bar:
        from django.db import connection
        from redis import Redis

        floor = Floor(conninfo(running), f"{running.model_url}/v1")
        owner = running.people(1)[0]
        product = Product(
            running,
            running.stack.api_as(owner),
            psycopg.connect(conninfo(running), autocommit=True),
            Redis.from_url(running.stack.redis.url),
        )
        whole: dict[int, Timings] = {}
        windowed: dict[int, Timings] = {}
        for depth in depths:
            for name, into, window in (("whole history", whole, None), (f"window of {WINDOW}", windowed, WINDOW)):
                task = bar.add_task(f"depth {depth:,}, {name}", total=asked.rounds + 2)
                into[depth] = measure(running, floor, product, depth, asked.rounds, window, partial(bar.advance, task))
        task = bar.add_task("storage", total=asked.exchanges * 3)
        stored = storage(running, floor, asked.exchanges, lambda: bar.advance(task))
        connection.close()
    head = ["depth", "floor, ms", "in process", "product, 202 to idle", "product with POST"]
    report(f"## Overhead per generation ({load()}; medians of {asked.rounds}, interleaved)\n")
    report("Whole history sent:\n\n" + table(head, timing_rows(whole)))
    report(f"A rewritten view of {WINDOW} turns (equal context):\n\n" + table(head, timing_rows(windowed)))
    sizes = [[span, f"{grown:,.0f}", f"{raw:,.0f}", f"{grown / max(raw, 1):.1f}x"] for span, grown, raw in stored]
    report("Storage, bytes an exchange:\n\n" + table(["exchanges", "product", "floor", "ratio"], sizes))


if __name__ == "__main__":
    main()
