"""Counts over time as bars for a small drawing that the server makes. Pure."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Block:
    """One coloured stretch of a bar, in the drawing's units."""

    x: int
    y: float
    height: float
    kind: str
    title: str


BAR_WIDTH, BAR_STEP, CHART_HEIGHT = 8, 10, 100


@dataclass(frozen=True, slots=True)
class Chart:
    blocks: list[Block]
    width: int
    top: int  # what the full height stands for
    totals: list[tuple[str, int]]
    first: datetime
    last: datetime

    @property
    def is_empty(self) -> bool:
        return self.top == 0


def stacked(table: list[tuple[datetime, dict[str, int]]], form: str) -> Chart:
    """A bar for each moment, its kinds upon each other; ``form`` writes the moment in the tooltip."""
    top = max((sum(counts.values()) for _, counts in table), default=0)
    totals: dict[str, int] = defaultdict(int)
    blocks = []
    for index, (moment, counts) in enumerate(table):
        y = float(CHART_HEIGHT)
        for kind, count in counts.items():
            totals[kind] += count
            if not count:
                continue
            height = round(count * CHART_HEIGHT / top, 2)
            y = round(y - height, 2)
            blocks.append(Block(index * BAR_STEP, y, height, kind, f"{moment.strftime(form)}: {count:,} {kind}"))
    return Chart(blocks, len(table) * BAR_STEP - 2, top, list(totals.items()), table[0][0], table[-1][0])
