"""A comparison of two requests, piece by piece. It is bounded, and skips equal beginnings and ends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import zip_longest

from dialogs.queries.sent_requests import Piece

MOST_COMPARED = 400  # pieces of each request, without the equal beginning and end
MOST_ROWS = 300
MOST_LINES = 400  # of each text that are compared
LINE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a comparison: the number of pieces ``alike`` in both requests, or a piece of one of them, or of both
    with the changed ``lines``.
    """

    alike: int = 0
    before: Piece | None = None
    after: Piece | None = None
    lines: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        if self.alike:
            return "alike"
        return "changed" if self.before and self.after else "removed" if self.before else "added"


@dataclass(frozen=True, slots=True)
class Diff:
    rows: tuple[Row, ...]
    is_cut: bool = False


def diff(before: Sequence[Piece], after: Sequence[Piece]) -> Diff:
    rows = list(_rows(before, after))
    return Diff(tuple(rows[:MOST_ROWS]), len(rows) > MOST_ROWS)


def _rows(before: Sequence[Piece], after: Sequence[Piece]) -> Iterator[Row]:
    old, new = list(map(_key, before)), list(map(_key, after))
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    if head:
        yield Row(alike=head)
    yield from _middle(before[head:old_end], after[head:new_end], old[head:old_end], new[head:new_end])
    if tail:
        yield Row(alike=tail)


def _middle(
    before: Sequence[Piece], after: Sequence[Piece], old: Sequence[tuple[str, ...]], new: Sequence[tuple[str, ...]]
) -> Iterator[Row]:
    if max(len(old), len(new)) > MOST_COMPARED:
        yield from (Row(before=piece) for piece in before)
        yield from (Row(after=piece) for piece in after)
        return
    for word, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if word == "equal":
            yield Row(alike=end - start)
            continue
        for left, right in zip_longest(before[start:end], after[new_start:new_end]):
            if left and right and left.category == right.category:
                yield Row(before=left, after=right, lines=_lines(left.text, right.text))
                continue
            if left:
                yield Row(before=left)
            if right:
                yield Row(after=right)


def _key(piece: Piece) -> tuple[str, ...]:
    return (piece.category.value, piece.label, piece.text, *piece.prompts)


def _common(old: Sequence[tuple[str, ...]], new: Sequence[tuple[str, ...]]) -> int:
    return next(
        (at for at, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new))
    )


def _lines(before: str, after: str) -> tuple[str, ...]:
    old, new = before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]
    changed = unified_diff(old, new, lineterm="", n=2)
    return tuple(line[:LINE_CHARS] for line in list(changed)[2:])
