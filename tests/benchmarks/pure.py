"""The pure parts and the local models, beside their targets: ``python -m tests.benchmarks.pure``. No servers.

Each row is the median and the 95th percentile of repetitions that start from cold caches where a cache would lie: texts
are made anew for each.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

from dominds.llm.messages import Message, Role
from dominds.llm.usage import Usage
from health.levels import Thresholds, judge
from remediation.config import ContextConfig, Weights
from remediation.context import Unit, UnitKind, UnitRole, Units
from remediation.evaluation.policies import toolbox_of
from remediation.similarity.embeddings import (
    CachingEmbedder,
    Embedder,
    LexicalEmbedder,
    MiniLMEmbedder,
)
from remediation.similarity.minilm import MiniLM, model_directory
from remediation.strategies.breaking.chain import break_context
from remediation.strategies.digest import shorten
from remediation.strategies.importance import prune, score_parts
from remediation.synthetic_dialogs import Mix, overflowing_dialog
from remediation.tokens.counting import counter_for
from tests.benchmarks.rig import load, progress, report, table

COUNTER = counter_for("gpt-4")
WORDS = (
    "the parser fails on empty input because refunds carry a customer id and retries are bounded by config.yaml while "
    "never pushing to main returns error 503 from billing service with amount 12,499 at /srv/app/main.py line 42"
).split()


@dataclass(frozen=True)
class Row:
    name: str
    target: str
    run: Callable[[int], object]
    repetitions: int = 20


def prose(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) + (str(rng.randrange(9999)) if rng.random() < 0.2 else "") for _ in range(words))


def units(rng: Random, number: int) -> Units:
    roles = (UnitRole.USER, UnitRole.ASSISTANT)
    return tuple(
        Unit(
            f"turn-{index}",
            UnitKind.MESSAGE,
            roles[index % 2],
            (Message(Role.USER if index % 2 == 0 else Role.ASSISTANT, prose(rng, 40)),),
            (index,),
            est_tokens=60,
        )
        for index in range(number)
    )


def turns(number: int) -> list[Any]:
    """Rows of turns as ``transcript`` reads them."""
    rng = Random(number)
    return [
        SimpleNamespace(
            seq=seq,
            position=seq,
            role=("user", "assistant")[seq % 2],
            status="complete",
            text=prose(rng, 40),
            tool_calls=None,
            tool_call_id="",
            tool_name="",
            provider_items=None,
            attachments=None,
        )
        for seq in range(number)
    ]


def scoring(number: int) -> Row:
    made = units(Random(number), number)

    def run(_: int) -> object:
        return prune(made, 60 * number // 2, Weights())

    return Row(f"score and prune {number:,} messages", f"{number / 100:g} ms" if number < 10_000 else "–", run, 10)


def chain(name: str, using: Embedder) -> Row:
    def run(number: int) -> object:
        box = toolbox_of(COUNTER, CachingEmbedder(using, time.monotonic))  # as in the product, and empty each time
        rng = Random(number)
        dialog = overflowing_dialog(rng, 5_000, 2.0, box.count, Mix())
        fifty = dialog.units[-50:]
        started = time.perf_counter()
        break_context(fifty, ContextConfig(), box, 2_500, 1_250)
        return (time.perf_counter() - started) * 1000

    return Row(f"the whole chain on 50 units, {name}", "2,000 ms", run, 5)


def rows() -> Iterator[Row]:
    from dialogs.context.units import group

    limits = Thresholds(context_limit=128_000)
    yield Row("judge a level", "–", lambda number: judge(Usage(100_000 + number, 10), limits), 200)
    text = {number: prose(Random(number), 220) for number in range(60)}
    yield Row("count a text of 1,000 characters", "5 ms", lambda number: COUNTER.count(text[number][:1_000]), 60)
    long = {number: prose(Random(number), 5_600) for number in range(10)}
    yield Row("count a text of 10,000 tokens", "–", lambda number: COUNTER.count(long[number]), 10)
    for number in (1_000, 4_000):
        made = turns(number)
        yield Row(f"a view of {number:,} turns", "–", lambda _, made=made: group(made), 10)  # type: ignore[misc]
    hundred = units(Random(1), 100)
    yield Row("score one message", "0.01 ms", lambda n: (score_parts(hundred[n % 100], n % 100, 100, Weights()),), 200)
    for number in (100, 1_000, 10_000):
        yield scoring(number)
    for_summary = {number: prose(Random(number), 1_100) for number in range(10)}
    yield Row(
        "shorten 2,000 tokens to 300",
        "500 ms",
        lambda number: shorten(for_summary[number], 300, COUNTER.count),
        10,
    )
    lexical = LexicalEmbedder()
    yield Row("embed a unit, lexical", "100 ms", lambda number: lexical.embed([text[number]]), 20)
    yield chain("lexical", lexical)
    if directory := model_directory():
        minilm = MiniLMEmbedder(MiniLM(directory))
        yield Row("embed a unit, MiniLM", "100 ms", lambda number: minilm.embed([text[number]]), 10)
        yield chain("MiniLM", minilm)


def timings(row: Row) -> list[float]:
    """Milliseconds. A row that times itself, to leave its preparation out, answers a float."""
    results = []
    row.run(0) if row.repetitions > 5 else None
    for number in range(row.repetitions):
        started = time.perf_counter()
        answer = row.run(number)
        passed = (time.perf_counter() - started) * 1000
        results.append(answer if isinstance(answer, float) else passed)
    return results


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    import django

    django.setup()
    cells = []
    with progress() as bar:
        task = bar.add_task("pure parts", total=None)
        for row in rows():
            result = timings(row)
            p95 = quantiles(result, n=20)[18] if len(result) > 4 else max(result)
            cells.append([row.name, row.target, f"{median(result):,.3g}", f"{p95:,.3g}"])
            bar.advance(task)
    report(f"## Pure parts ({load()})\n\n" + table(["part", "target", "median, ms", "p95, ms"], cells))


if __name__ == "__main__":
    main()
