"""Which of what is out of sight comes back, and how the request shows it. No clock, no rows, no model.

1. Rank all passages by the words of the newest message and, for less, those of the exchange before it.
2. Ask again with the rare words that the best hits have in common: what the question leads to but does not name.
3. Let each hit speak for its neighbours, since an answer seldom repeats the words of its question.
4. Take the best that fit, without what is in sight or says the same, and show them in the order of the dialog.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass
from itertools import pairwise

from remediation.recall.passages import Passage
from remediation.recall.query import Query, query_weights
from remediation.recall.scoring import DEFAULT, Archive, Hit, Tuning, scored, top
from remediation.recall.words import words

# Of a budget of 5,000 tokens, 15 % bring 75 % of the evidence into sight, 20 % 77 %, 35 % 82 % and 50 % 84 %.
SHARE = 0.35
MOST_TOKENS = 4_096  # however large the window: what a question needs does not grow with it
HEADING = (
    "[Recalled by the runtime from earlier in this dialog, each with its turn's number and who said it. It is no longer "
    "shown above, and nobody said it again just now.]"
)
SMALLEST_BUDGET = 48  # tokens; less holds no heading and a sentence
SMALLEST_PASSAGE = 12  # tokens, its label included; less room is not worth looking for a text that fits
SHORTEST_DUPLICATE = 40  # characters; a "Yes" that was said elsewhere too may still be the answer
CANDIDATES = 256  # best passages that are tried for the room


@dataclass(frozen=True, slots=True)
class Piece:
    """Passages that follow each other. ``turns`` are their numbers, ``why`` the words of the query that they hold."""

    turns: tuple[int, ...]
    text: str
    score: float
    why: tuple[str, ...]
    est_tokens: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """In the order of the dialog. ``est_tokens`` is the size of the rendered block, 0 without pieces."""

    pieces: tuple[Piece, ...] = ()
    est_tokens: int = 0


def room_for(budget: int, request_tokens: int, share: float = SHARE) -> int:
    """Tokens for recalled text in a request of a budget: its share of it, as far as the request leaves that free."""
    return max(0, min(int(budget * share), MOST_TOKENS, budget - request_tokens))


def recall(
    archive: Archive,
    in_sight: Collection[int],
    shown: str,
    query: Query,
    budget_tokens: int,
    count: Callable[[str], int],
    tuning: Tuning = DEFAULT,
) -> Recalled:
    """What fits into ``budget_tokens``, heading and labels included, of turns that are not in ``in_sight``.

    ``in_sight`` are the turns that stand word for word in the request, and those that a person wants left out. ``shown``
    is the text of the request: no passage comes back that stands in it, such as a file that was read again.
    """
    weights = query_weights(query)
    if budget_tokens < SMALLEST_BUDGET or not weights or not archive.corpus.entries:
        return Recalled()
    scores = scored(archive, weights, tuning)
    scores[archive.entries_of(in_sight)] = 0.0
    best = top(scores, CANDIDATES).tolist()
    found = zip(best, archive.passages(best), strict=True)
    hits = (Hit(entry, float(scores[entry]), passage) for entry, passage in found)
    chosen = _fitting(hits, shown, budget_tokens - count(HEADING), count)
    return _within(chosen, weights.keys(), budget_tokens, count)


def _fitting(hits: Iterable[Hit], shown: str, room: int, count: Callable[[str], int]) -> list[Hit]:
    """The best hits that fit, best first, but none that says what is shown or was chosen already."""
    chosen: list[Hit] = []
    taken: set[str] = set()
    for hit in hits:
        text = hit.passage.text
        size = hit.passage.est_tokens + count(_label(hit.passage)) + 1
        if size <= room and (len(text) < SHORTEST_DUPLICATE or not (text in taken or text in shown)):
            chosen.append(hit)
            taken.add(text)
            room -= size
        if room < SMALLEST_PASSAGE:
            break
    return chosen


def _within(chosen: list[Hit], asked: Set[str], budget_tokens: int, count: Callable[[str], int]) -> Recalled:
    """Tokens of parts do not add up exactly: the last chosen go until the whole fits."""
    while chosen:
        recalled = Recalled(_pieces(sorted(chosen, key=lambda hit: hit.entry), asked))
        size = count(render(recalled))
        if size <= budget_tokens:
            return Recalled(recalled.pieces, size)
        chosen = chosen[:-1]
    return Recalled()


def _pieces(hits: list[Hit], asked: Set[str]) -> tuple[Piece, ...]:
    groups = [[hits[0]]]
    for earlier, hit in pairwise(hits):
        if hit.entry == earlier.entry + 1:
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return tuple(_piece(group, asked) for group in groups)


def _piece(hits: list[Hit], asked: Set[str]) -> Piece:
    found = Counter(word for hit in hits for word in words(hit.passage.text) if word in asked)
    return Piece(
        turns=tuple(dict.fromkeys(hit.passage.turn for hit in hits)),
        text="\n".join(f"{_label(hit.passage)} {hit.passage.text}" for hit in hits),
        score=max(hit.score for hit in hits),
        why=tuple(sorted(found, key=lambda word: (-found[word], word))),
        est_tokens=sum(hit.passage.est_tokens for hit in hits),
    )


def _label(passage: Passage) -> str:
    """The turn's number and who said it; of a long turn which part. Short, since it stands before every passage."""
    part = f", {passage.part + 1}/{passage.parts}" if passage.parts > 1 else ""
    return f"[{passage.turn} {passage.speaker}{part}]"


def render(recalled: Recalled) -> str:
    """The block at the end of the request; empty without pieces."""
    return "\n".join((HEADING, *(piece.text for piece in recalled.pieces))) if recalled.pieces else ""
