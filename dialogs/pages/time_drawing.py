"""A drawing of a dialog's calls: a column for each, its categories stacked, and thresholds as lines. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.text import slugify
from django.utils.translation import gettext as _

from dialogs.pages.bar_chart import HEIGHT, Block, ceiling, format_number, stack_blocks
from dialogs.pages.story import Act
from dialogs.queries.moments import Moment

STEP = 10  # from one column to the next, in the drawing's units
LEAST_COLUMNS = 16  # the drawing has room for so many; fewer stand at the right
COLUMN_PIXELS = 6  # the least width of a column
ROOM_ABOVE = 1.02  # the tallest column stays below the upper edge
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # shares of the height at which the axis has numbers
THRESHOLDS = {"window": "model_context_limit", "critical": "critical_max_tokens", "optimal": "optimal_max_tokens"}
NEAR = 2.5  # times the tallest column: a threshold above that is not drawn


@dataclass(frozen=True, slots=True)
class Column:
    moment: Moment
    mark: str  # the kind of the first act before the request, or empty; others are not drawn
    x: int
    blocks: list[Block]
    words: str


@dataclass(frozen=True, slots=True)
class Drawing:
    columns: tuple[Column, ...]
    lines: tuple[tuple[str, str], ...]  # thresholds, each with its path
    top: int  # tokens of the full height
    width: int
    pixels: int  # the least width, which a wider page stretches
    ticks: tuple[tuple[float, str], ...]  # percent from above, and the number of tokens there

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column.mark for column in self.columns if column.mark))


def draw(moments: Sequence[Moment], marks: Mapping[str, Sequence[Act]]) -> Drawing:
    width = max(LEAST_COLUMNS, len(moments)) * STEP
    left = width - len(moments) * STEP
    tallest = max((moment.tokens for moment in moments), default=0) or 1
    thresholds = {
        kind: [getattr(moment.snapshot, column, None) for moment in moments] for kind, column in THRESHOLDS.items()
    }
    near = {
        kind: values
        for kind, values in thresholds.items()
        if 0 < max(filter(None, values), default=0) <= tallest * NEAR
    }
    top = round(ceiling(max([tallest, *(value for values in near.values() for value in values if value)]) * ROOM_ABOVE))
    return Drawing(
        columns=tuple(
            _column(moment, marks.get(moment.key, ()), left + at * STEP, top) for at, moment in enumerate(moments)
        ),
        lines=tuple((kind, " ".join(_path(values, left, top))) for kind, values in near.items()),
        top=top,
        width=width,
        pixels=width // STEP * COLUMN_PIXELS,
        ticks=tuple((round(100 * (1 - share), 1), format_number(top * share, "")) for share in SHARES),
    )


def _column(moment: Moment, marks: Sequence[Act], x: int, top: int) -> Column:
    parts = {slugify(kind.value): tokens for kind, tokens in moment.shares.items() if tokens}
    blocks = stack_blocks(parts or {"whole": moment.tokens}, top)
    return Column(moment, marks[0].kind if marks else "", x, blocks, _words(moment, marks))


def _words(moment: Moment, acts: Sequence[Act]) -> str:
    parts = ", ".join(f"{_(kind.value)} {tokens:,}" for kind, tokens in moment.shares.items() if tokens)
    marks = "; ".join(act.title for act in acts)
    whole = f"{moment.title}: {moment.size}"
    return ". ".join(filter(None, (whole, parts and _("est. {parts}").format(parts=parts), marks)))


def _path(values: Sequence[int | None], left: int, top: int) -> Iterator[str]:
    """Return a path with a step for each column whose threshold is known."""
    last: int | None = None
    for at, value in enumerate(values):
        if value is None:
            last = None
            continue
        y, x = round(HEIGHT - value * HEIGHT / top, 2), left + at * STEP
        yield f"H{x + STEP}" if value == last else f"M{x} {y}H{x + STEP}"
        last = value
