"""A drawing of a dialog's calls: a column for each, its categories stacked, and thresholds as lines. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from dialogs.pages.bar_chart import ceiling, format_number
from dialogs.queries.moments import Moment
from health.models import HealthSnapshot

STEP, WIDTH, HEIGHT = 10, 8, 100  # a column's measures, in the drawing's units
MOST_FEW, FEW_PIXELS, COLUMN_PIXELS = 16, 32, 6  # so few columns are as wide, and stand beside their words
ROOM_ABOVE = 1.02  # the tallest column stays below the upper edge
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # shares of the height at which the axis has numbers
THRESHOLDS: dict[str, Callable[[HealthSnapshot], int | None]] = {
    "window": lambda snapshot: snapshot.model_context_limit,
    "critical": lambda snapshot: snapshot.critical_max_tokens,
    "optimal": lambda snapshot: snapshot.optimal_max_tokens,
}
NEAR = 2.5  # times the tallest column: a threshold above that is not drawn


@dataclass(frozen=True, slots=True)
class Block:
    y: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Column:
    moment: Moment
    x: int
    blocks: tuple[Block, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Drawing:
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    top: int  # tokens of the full height
    width: int
    ticks: tuple[tuple[float, str], ...]  # percent from above, and the number of tokens there

    @property
    def pixels(self) -> int:
        """Return the width of few columns, or the least width of many, which a wider page stretches."""
        return self.width // STEP * (FEW_PIXELS if self.is_few else COLUMN_PIXELS)

    @property
    def is_few(self) -> bool:
        return len(self.columns) <= MOST_FEW

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the kinds of marks over columns. Of several marks over one column only the first is drawn."""
        return tuple(dict.fromkeys(column.moment.marks[0].kind for column in self.columns if column.moment.marks))


def draw(moments: Sequence[Moment]) -> Drawing:
    width = max(1, len(moments)) * STEP
    tallest = max((moment.tokens for moment in moments), default=0) or 1
    thresholds = {kind: [_threshold(moment, kind) for moment in moments] for kind in THRESHOLDS}
    near = {
        kind: values
        for kind, values in thresholds.items()
        if 0 < max(filter(None, values), default=0) <= tallest * NEAR
    }
    top = round(ceiling(max([tallest, *(value for values in near.values() for value in values if value)]) * ROOM_ABOVE))
    return Drawing(
        columns=tuple(_column(moment, at * STEP, top) for at, moment in enumerate(moments)),
        lines=tuple(Line(kind, " ".join(_path(values, top))) for kind, values in near.items()),
        top=top,
        width=width,
        ticks=axis(top),
    )


def axis(top: int) -> tuple[tuple[float, str], ...]:
    """Return the numbers of the axis: each as percents from above and a number of tokens, from the top down to 0."""
    return tuple((round(100 * (1 - share), 1), format_number(top * share, "")) for share in SHARES)


def _threshold(moment: Moment, kind: str) -> int | None:
    return THRESHOLDS[kind](moment.snapshot) if moment.snapshot else None


def _column(moment: Moment, x: int, top: int) -> Column:
    blocks, y = list[Block](), float(HEIGHT)
    parts = [(kind.value, tokens) for kind, tokens in moment.shares.items()] or [("whole", moment.tokens)]
    for kind, tokens in parts:
        if tokens:
            height = round(tokens * HEIGHT / top, 2)
            y = round(y - height, 2)
            blocks.append(Block(y, height, kind.replace(" ", "-")))
    return Column(moment, x, tuple(blocks), _words(moment))


def _words(moment: Moment) -> str:
    row = moment.generation
    size = (_("{number:,} tokens reported") if moment.is_reported else _("est. {number:,} tokens")).format(
        number=moment.tokens
    )
    parts = ", ".join(f"{_(kind.value)} {tokens:,}" for kind, tokens in moment.shares.items() if tokens)
    marks = "; ".join(mark.text for mark in moment.marks)
    whole = _("Call {number}, {outcome}: {size}").format(number=f"{moment.number:,}", outcome=_(row.outcome), size=size)
    if moment.is_next:
        whole = _("The next request: {size}").format(size=size)
    return ". ".join(filter(None, (whole, parts and _("est. {parts}").format(parts=parts), marks)))


def _path(values: Sequence[int | None], top: int) -> Iterator[str]:
    """Return a path with a step for each column whose threshold is known."""
    last: int | None = None
    for at, value in enumerate(values):
        if value is None:
            last = None
            continue
        y, right = round(HEIGHT - value * HEIGHT / top, 2), (at + 1) * STEP
        yield f"H{right}" if value == last else f"M{at * STEP} {y}H{right}"
        last = value
