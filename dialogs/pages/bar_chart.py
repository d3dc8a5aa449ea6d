"""A bar chart of sums over time, with stacked bars and axes, as numbers from which a template draws an SVG. Pure.

Horizontal places are percentages of the drawing's width and vertical ones are pixels, so that no text is stretched.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from django.utils.dateformat import format as date_format
from django.utils.translation import gettext as _

HEIGHT = 100.0  # pixels of the highest bar
TOP, FLOOR = 28.0, 28.0 + HEIGHT  # pixels from above; the title of the bar under the pointer stands above TOP
BAR_SHARE = 0.7  # the part of its column's width that a bar fills


def format_number(number: float, kind: str) -> str:
    """Return a number as text: in full before its ``kind``, or, without a kind, short as at the axis (``1.5k``)."""
    if kind:
        return f"{number:,.0f} {_(kind)}"
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= scale), (1, "")
    )
    return f"{number / scale:g}{unit}"


@dataclass(frozen=True, slots=True)
class Block:
    """One coloured stretch of a bar."""

    y: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar. ``label`` stands below it, ``title`` above the drawing under the pointer, and ``address`` is its link."""

    x: float
    width: float
    label: str
    title: str
    address: str
    blocks: list[Block]

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 2)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. ``ticks`` are heights with their numbers, and ``totals`` are kinds with their sums in words."""

    bars: list[Bar]
    ticks: list[tuple[float, str]]
    totals: list[tuple[str, str]]

    @property
    def is_empty(self) -> bool:
        return not any(bar.blocks for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of bars.

    ``title`` and ``label`` are Django's date formats: of the time in a bar's title, and of the label below each
    ``every``-th bar. ``of_sum`` formats a number of a kind, and ``rest`` returns a text for the end of a title.
    """

    title: str
    label: str = "d"
    every: int = 1
    of_sum: Callable[[float, str], str] = format_number
    rest: Callable[[datetime], str] = lambda moment: ""


def stack(
    table: Sequence[tuple[datetime, Mapping[str, float]]],
    words: Words,
    *,
    least: float = 2,
    address: Callable[[datetime], str] = lambda moment: "",
) -> Chart:
    """Draw a bar for each moment, with its kinds stacked. The axis reaches at least to ``least``."""
    top = ceiling(max((sum(counts.values()) for _, counts in table), default=0), least)
    step = 100 / max(1, len(table))
    bars, totals = [], defaultdict[str, float](float)
    for index, (moment, counts) in enumerate(table):
        present = {kind: count for kind, count in counts.items() if count}
        for kind, count in counts.items():
            totals[kind] += count
        parts = [date_format(moment, words.title), *(words.of_sum(count, kind) for kind, count in present.items())]
        x, name = (
            index * step + step * (1 - BAR_SHARE) / 2,
            date_format(moment, words.label) if index % words.every == 0 else "",
        )
        blocks = stack_blocks(present, top, FLOOR)
        bars.append(
            Bar(
                round(x, 2),
                round(step * BAR_SHARE, 2),
                name,
                " · ".join(filter(None, (*parts, words.rest(moment)))),
                address(moment) if blocks else "",
                blocks,
            )
        )
    ticks = [(FLOOR - HEIGHT * share, words.of_sum(top * share, "")) for share in (1, 0.5)]
    return Chart(bars, ticks, [(kind, words.of_sum(total, kind)) for kind, total in totals.items() if total])


def stack_blocks(counts: Mapping[str, float], top: float, floor: float = HEIGHT) -> list[Block]:
    """Stack a block for each kind from ``floor`` upwards. ``top`` is the number that the whole height stands for."""
    blocks, y = [], floor
    for kind, count in counts.items():
        height = round(count * HEIGHT / top, 2)
        y = round(y - height, 2)
        blocks.append(Block(y, height, kind))
    return blocks


def ceiling(most: float, least: float = 0) -> float:
    """Return the top of an axis: the next round number, such as 2, 40 or 600, whose half is round as well."""
    most = max(most, least)
    if most <= 0:
        return 1
    power = 10.0 ** floor(log10(most))
    return next(digit * power for digit in (1, 2, 4, 6, 8, 10) if digit * power >= most)
