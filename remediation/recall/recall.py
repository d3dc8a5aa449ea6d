"""Recall of what is out of sight: which passages come back, and how the request shows them.
No clock, no rows, no model.

1. Rank all passages by the words of the newest message and, for less, those of the exchange before it.
2. Let each hit speak for its neighbours, since an answer seldom repeats the words of its question.
3. Where vectors are known, mix in how near each passage is to the newest message in meaning.
4. Let count for more what those said whom the newest message names.
5. Take the best that fit, without what is in sight or says the same, and show them in the order of the dialog.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from remediation.recall.index import Index
from remediation.recall.passages import Passage
from remediation.recall.query import Query, query_weights, speakers_named_in
from remediation.recall.ranking import top
from remediation.recall.scoring import Hit, entries_named_in, score
from remediation.text.marks import fenced

HEADING = (
    "[Recalled by the runtime: turn, speaker, words; further lines begin with a bar. Nobody said it again just now.]"
)
SMALLEST_BUDGET = 48  # tokens; less holds no heading and a sentence
SMALLEST_PASSAGE = 12  # tokens, its label included; less room is not worth looking for a text that fits
SHORTEST_DUPLICATE = 40  # characters; a "Yes" that was said elsewhere too may still be the answer
CANDIDATES = 256  # best passages that are tried for the room
# Of its estimate that a passage is taken to have. From 0.01 to 0.9 the sets find the same; a recall over a dialog of
# BEAM counts 228 passages with a third, 60 with this.
LEAST_SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class Recalled:
    """The passages that come back, in the dialog's order. ``est_tokens`` bounds ``text``, the rendered block."""

    found: tuple[Passage, ...] = ()
    est_tokens: int = 0
    text: str = ""

    @property
    def turns(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(passage.turn for passage in self.found))

    @property
    def passages(self) -> tuple[tuple[int, ...], ...]:
        """Return turn, part and the pairs of ``superseded`` of each passage, in the order of the text."""
        return tuple((passage.turn, passage.part, *chain(*passage.superseded)) for passage in self.found)


@dataclass(frozen=True, slots=True)
class InSight:
    """The part of a dialog that the request shows anyway: ``turns`` word for word, or as a person wants them left out,
    and ``text``, all that it says or what of it is in no turn.
    """

    turns: Collection[int] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The tokens that may come back, heading and labels included, and how they are counted."""

    tokens: int
    count: Callable[[str], int]


def recall(
    archive: Index,
    query: Query,
    in_sight: InSight,
    allowance: Allowance,
    pinned: Collection[int] = (),
    since_clear: Collection[int] | None = None,
) -> Recalled:
    """Return what answers the query and is not in sight, as far as it fits.

    ``since_clear`` are the turns since the mind was cleared, if it ever was: of others only what the newest message
    itself names comes back.

    No passage comes back that a turn in sight holds, such as a file that was read again. ``pinned`` turns come first,
    whatever is asked.
    """
    count = allowance.count
    weights = query_weights(query)
    if allowance.tokens < SMALLEST_BUDGET or not (weights or pinned) or not archive.corpus.entries:
        return Recalled()
    scores = score(archive, weights, query.meaning, speakers_named_in(query.newest))
    hidden = archive.entries_of(in_sight.turns)
    scores[hidden] = 0.0
    if since_clear is not None:
        may_come = entries_named_in(archive, query.newest)
        may_come[archive.entries_of(since_clear)] = True
        scores[~may_come] = 0.0
    first = np.sort(archive.entries_of(set(pinned).difference(in_sight.turns)))
    scores[first] = 0.0
    best = top(scores, CANDIDATES)
    result = chain(*(zip(part, archive.passages(part), strict=True) for part in (first.tolist(), best.tolist())))
    hits = (Hit(entry, passage) for entry, passage in result)
    texts_in_sight = {passage.text for passage in archive.passages(hidden.tolist())}
    room = allowance.tokens - count(HEADING)
    chosen = sorted(_fitting(hits, texts_in_sight, in_sight.text, room, count), key=lambda fit: fit.hit.entry)
    if not chosen:
        return Recalled()
    size = count(HEADING) + sum(fit.tokens for fit in chosen)
    return Recalled(tuple(fit.hit.passage for fit in chosen), size, _block(fit.line for fit in chosen))


class _Fit(NamedTuple):
    """A hit that fits, its line of the block, and the tokens of that."""

    hit: Hit
    line: str
    tokens: int


def _fitting(
    hits: Iterable[Hit], taken: set[str], shown: str, room: int, count: Callable[[str], int]
) -> Iterator[_Fit]:
    """Yield the best hits that fit, best first, without repetitions of each other or of ``shown``.

    Only what may fit is counted, since counting takes longer than ranking.
    """
    for hit in hits:
        if room < SMALLEST_PASSAGE:
            return
        text = hit.passage.text
        if hit.passage.est_tokens * LEAST_SHARE > room or (
            len(text) >= SHORTEST_DUPLICATE and (text in taken or text in shown)
        ):
            continue
        said, label = fenced(hit.passage.marked), _label(hit.passage)
        size = count(said) + count(label) + 1
        if size <= room:
            yield _Fit(hit, f"{label} {said}", size)
            taken.add(text)
            room -= size


def _label(passage: Passage) -> str:
    """Name the turn's number and speaker, and the part of a long turn, briefly: each passage has such a label."""
    part = f", {passage.part + 1}/{passage.parts}" if passage.parts > 1 else ""
    return f"[{passage.turn} {passage.speaker}{part}]"


def render(passages: Iterable[Passage]) -> str:
    """Write the block that ends the request; empty without passages."""
    return _block(f"{_label(passage)} {fenced(passage.marked)}" for passage in passages)


def _block(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"{HEADING}\n{text}" if text else ""
