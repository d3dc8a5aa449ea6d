"""What work costs in this checkout and in others, in turns on one machine: ``python -m tests.benchmarks.pairs OTHER``.

Each checkout gets servers of its own, and each round asks all of them for the same piece of work, one after another,
so that a machine that is slower for a while is so for all. CPU is that of Python (in the driver's process for a turn
and a rewrite; of web process and worker for pages and calls) and of PostgreSQL's processes. Statements, bytes written
and calls of Python are counted apart, in rounds that are not timed.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

from tests.benchmarks.rig import load, progress, report, table
from tests.harness.stack import ROOT

WORK = (
    *("turn 1", "turn 500", "page home", "page 20", "page 500", "v1 chat"),
    *(f"rewrite {policy}" for policy in ("guided", "breaking", "retention", "autocompaction", "fresh-start")),
)
UNTIMED = 3  # rounds in which caches fill
COUNTED = 5
Figures = dict[str, dict[str, list[float]]]  # by work, then by measure


class Side:
    """A checkout's servers, which do what they are asked for. What that took is added to ``figures``."""

    def __init__(self, process: "subprocess.Popen[str]", figures: Figures) -> None:
        self.process, self.figures = process, figures

    def ask(self, how: str, work: str) -> dict[str, float]:
        assert self.process.stdin is not None
        print(how, work, file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("= "):
                return dict(json.loads(line[2:]))
        raise RuntimeError("A side has ended: its error stands above.")

    def keep(self, work: str, answer: dict[str, float]) -> None:
        for name, value in answer.items():
            self.figures[work][name].append(value)


@contextmanager
def side(checkout: Path, figures: Figures, further_paths: str, *, in_here: bool) -> Iterator[Side]:
    paths = os.pathsep.join(filter(None, (str(checkout), further_paths)))
    with subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("side.py")), *(["in-here"] if in_here else [])],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        result = Side(process, figures)
        result.answer()
        yield result  # it ends its servers when its input ends


def measure(sides: Sequence[Side], work: Sequence[str], rounds: int) -> None:
    with progress() as bar:
        for what in work:
            task = bar.add_task(what, total=UNTIMED + rounds + COUNTED)
            for number in range(UNTIMED + rounds):
                first = number % len(sides)  # none is asked twice in a row: what it left in the caches would help it
                for each in (*sides[first:], *sides[:first]):
                    answer = each.ask("timed", what)
                    if number >= UNTIMED:
                        each.keep(what, answer)
                bar.advance(task)
            for _ in range(COUNTED):
                for each in sides:
                    each.keep(what, each.ask("counted", what))
                bar.advance(task)


def cells(what: str, figures: Sequence[Figures]) -> Iterator[list[str]]:
    """Give a row for each measure: this checkout's median, its quartiles, and what it is to each other's."""
    mine, *others = (each[what] for each in figures)
    for name, values in mine.items():
        if not any(values):
            continue
        low, _, high = quantiles(values, n=4)
        row = [what, name, f"{median(values):,.1f}", f"{low:,.1f} to {high:,.1f}"]
        for other in others:
            base = median(other[name])
            row.append(f"{base:,.1f} ({(median(values) / base - 1) * 100:+.1f} %)" if base else f"{base:,.1f}")
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path, help="folders of other checkouts")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--work", default=",".join(WORK))
    parser.add_argument("--path", default="", help="of packages that only other checkouts need")
    parser.add_argument("--starts", type=int, default=1, help="of the servers: two differ by 3 %% with the same code")
    asked = parser.parse_args()
    work = asked.work.split(",")
    folders = [ROOT, *(folder.resolve() for folder in asked.checkouts)]
    figures: list[Figures] = [defaultdict(lambda: defaultdict(list)) for _ in folders]
    in_here = all(what.startswith(("turn", "rewrite")) for what in work)
    for _ in range(asked.starts):
        with ExitStack() as opened:
            sides = [
                opened.enter_context(side(folder, taken, asked.path, in_here=in_here))
                for folder, taken in zip(folders, figures, strict=True)
            ]
            measure(sides, work, asked.rounds)
    report(f"## Pairs ({load()}; medians of {asked.starts} x {asked.rounds}, in turns)\n")
    head = ["work", "of", "here", "quartiles", *(folder.name for folder in folders[1:])]
    report(table(head, [row for what in work for row in cells(what, figures)]))


if __name__ == "__main__":
    main()
