"""Search of an archive in a person's or agent's own words, ranked as recall ranks."""

from collections.abc import Collection
from dataclasses import dataclass

from remediation.recall.index import Index
from remediation.recall.query import Query, query_weights, speakers_named_in
from remediation.recall.ranking import top
from remediation.recall.scoring import Hit, score
from remediation.similarity.minilm import Array

MOST_HITS = 10
CANDIDATES = 40  # times the hits: enough to leave out those that stand beside better ones


@dataclass(frozen=True, slots=True)
class HitInPlace:
    """A hit between what was said just before and after it; at an end of the dialog there is nothing beside it."""

    hit: Hit
    neighbours: tuple[Hit, ...]

    @property
    def turns(self) -> tuple[int, ...]:
        return tuple(sorted({self.hit.passage.turn, *(other.passage.turn for other in self.neighbours)}))


def search(
    archive: Index,
    text: str,
    most: int = MOST_HITS,
    hidden: Collection[int] = (),
    meaning: Array | None = None,
) -> tuple[HitInPlace, ...]:
    """Return the best hits first, without the ``hidden`` turns. A passage beside a better hit is shown with that
    hit. ``meaning`` is the vector of the text.
    """
    weights = query_weights(Query(text))
    if not weights or not archive.corpus.entries:
        return ()
    scores = score(archive, weights, meaning, speakers_named_in(text))
    left_out = archive.entries_of(hidden)
    scores[left_out] = 0.0
    chosen: list[int] = []
    shown: set[int] = set()
    for entry in map(int, top(scores, most * CANDIDATES)):
        if len(chosen) == most:
            break
        if entry not in shown:
            chosen.append(entry)
            shown |= {entry - 1, entry, entry + 1}
    shown -= set(left_out.tolist())
    entries = [entry for entry in sorted(shown) if 0 <= entry < archive.corpus.entries]
    hits = {entry: Hit(entry, passage) for entry, passage in zip(entries, archive.passages(entries), strict=True)}
    return tuple(
        HitInPlace(hits[entry], tuple(hits[beside] for beside in (entry - 1, entry + 1) if beside in hits))
        for entry in chosen
    )
