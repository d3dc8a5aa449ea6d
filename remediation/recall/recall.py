"""Which of what is out of sight comes back, and how the request shows it. No clock, no rows, no model.

1. Rank all passages by the words of the newest message and, for less, those of the exchange before it.
2. Ask again with the rare words that the best hits have in common: what the question leads to but does not name.
3. Let each hit speak for its neighbours, since an answer seldom repeats the words of its question.
4. Take the best that fit, without what is in sight or says the same, and show them in the order of the dialog.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from remediation.recall.passages import Passage
from remediation.recall.ranking import Corpus, Floats, Postings, idf, rank, weightiest
from remediation.recall.words import words

SHARE = 0.15  # of the budget that recalled text may take unless a setting says otherwise
HEADING = "[Recalled by the runtime from earlier in this dialog, no longer shown above; nobody said this again just now]"
SMALLEST_BUDGET = 48  # tokens; less holds no heading and a sentence
CANDIDATES = 512  # best passages that are tried for the room
CONTEXT_CHARS = 4_000  # of the exchange before the newest message, its end


@dataclass(frozen=True, slots=True)
class Tuning:
    """How passages are scored. The defaults were chosen on dialogs of three kinds, and none of them is sharp."""

    context_weight: float = 0.25  # of a word of the exchange before, beside 1 for one of the newest message
    neighbour: float = 0.4  # of a passage's score that the ones beside it get
    second_neighbour: float = 0.15  # that those two away get
    feedback_hits: int = 5  # best passages whose words are asked for in the second round
    feedback_words: int = 20
    feedback_weight: float = 0.3  # of the best of these words; the others have less
    least_share: float = 0.0  # of the best score; what scores less stays away although there is room


@dataclass(frozen=True, slots=True)
class Query:
    """``newest`` is the message to be answered, ``before`` the exchange that led to it."""

    newest: str
    before: str = ""


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


class Archive(Protocol):
    """Where passages are stored, in the order of the dialog: in memory, or in a database's tables."""

    @property
    def corpus(self) -> Corpus: ...

    def holding(self, wanted: Iterable[str]) -> Mapping[str, int]:
        """How many entries hold each word, without words that none holds."""
        ...

    def postings(self, wanted: Iterable[str]) -> Mapping[str, Postings]: ...

    def passage(self, entry: int) -> Passage: ...

    def entries_of(self, turns: Collection[int]) -> NDArray[np.int32]:
        """The numbers of all passages of these turns."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    entry: int
    score: float
    passage: Passage


def recall(
    archive: Archive,
    in_sight: Collection[int],
    query: Query,
    budget_tokens: int,
    count: Callable[[str], int],
    tuning: Tuning = Tuning(),  # noqa: B008 - frozen
) -> Recalled:
    """What fits into ``budget_tokens``, heading and labels included, of turns that are not in ``in_sight``.

    ``in_sight`` are the turns that stand word for word in the request; of turns that stand shortened, passages may return.
    """
    weights = query_weights(query, tuning)
    if budget_tokens < SMALLEST_BUDGET or not weights or not archive.corpus.entries:
        return Recalled()
    scores = scored(archive, weights, tuning)
    visible = archive.entries_of(in_sight)
    scores[visible] = 0.0
    shown = {archive.passage(int(entry)).text for entry in visible}
    chosen = _fitting(_best(archive, scores, tuning), shown, budget_tokens - count(HEADING), count)
    return _within(chosen, frozenset(weights), budget_tokens, count)


def query_weights(query: Query, tuning: Tuning) -> dict[str, float]:
    """Each word once, whatever it is repeated: a long message is no better question."""
    before = dict.fromkeys(words(query.before[-CONTEXT_CHARS:]), tuning.context_weight)
    return before | dict.fromkeys(words(query.newest), 1.0)


def scored(archive: Archive, weights: Mapping[str, float], tuning: Tuning) -> Floats:
    """The score of every passage, second round and neighbours included."""
    corpus = archive.corpus
    wanted = weightiest(weights, archive.holding(weights), corpus.entries)
    scores = rank(wanted, archive.postings(wanted), corpus)
    further = _further_words(archive, scores, weights, tuning)
    scores += rank(further, archive.postings(further), corpus)
    return _with_neighbours(scores, tuning)


def _further_words(
    archive: Archive, scores: Floats, weights: Mapping[str, float], tuning: Tuning
) -> dict[str, float]:
    """The telling words of the best hits that the query lacks, each as much as its hits score. A word of a single
    passage leads nowhere else."""
    hits = [int(entry) for entry in _top(scores, tuning.feedback_hits)]
    total = sum(scores[entry] for entry in hits)
    shares: dict[str, float] = defaultdict(float)
    for entry in hits:
        for word in set(words(archive.passage(entry).text)) - weights.keys():
            shares[word] += float(scores[entry] / total)
    entries, holding = archive.corpus.entries, archive.holding(shares)
    rarity = {word: idf(entries, number) for word, number in holding.items() if number > 1}
    best = sorted(rarity, key=lambda word: (-shares[word] * rarity[word], word))[: tuning.feedback_words]
    if not best:
        return {}
    most = shares[best[0]] * rarity[best[0]]
    return {word: tuning.feedback_weight * shares[word] * rarity[word] ** 2 / most for word in best}


def _with_neighbours(scores: Floats, tuning: Tuning) -> Floats:
    spread = scores.copy()
    for distance, weight in ((1, tuning.neighbour), (2, tuning.second_neighbour)):
        spread[distance:] += weight * scores[:-distance]
        spread[:-distance] += weight * scores[distance:]
    return spread


def _top(scores: Floats, number: int) -> NDArray[np.intp]:
    """The best entries, best first, the earlier of equals first. Those without a score are none."""
    found = np.flatnonzero(scores > 0)
    if len(found) > number:
        values = scores[found]
        least = np.partition(values, len(values) - number)[len(values) - number]
        found = found[values >= least]
    return found[np.argsort(-scores[found], kind="stable")][:number]


def _best(archive: Archive, scores: Floats, tuning: Tuning) -> list[Hit]:
    best = _top(scores, CANDIDATES)
    least = scores[best[0]] * tuning.least_share if len(best) else 0.0
    return [Hit(int(e), float(scores[e]), archive.passage(int(e))) for e in best if scores[e] >= least]


def _fitting(hits: Iterable[Hit], shown: set[str], room: int, count: Callable[[str], int]) -> list[Hit]:
    """The best hits that fit, best first, none of which says what is shown already."""
    chosen = []
    for hit in hits:
        size = hit.passage.est_tokens + count(_label(hit.passage)) + 1
        if size <= room and hit.passage.text not in shown:
            chosen.append(hit)
            shown.add(hit.passage.text)
            room -= size
        if room <= 0:
            break
    return chosen


def _within(chosen: list[Hit], asked: frozenset[str], budget_tokens: int, count: Callable[[str], int]) -> Recalled:
    """Tokens of parts do not add up exactly: the last chosen go until the whole fits."""
    while chosen:
        recalled = Recalled(_pieces(sorted(chosen, key=lambda hit: hit.entry), asked))
        size = count(render(recalled))
        if size <= budget_tokens:
            return Recalled(recalled.pieces, size)
        chosen = chosen[:-1]
    return Recalled()


def _pieces(hits: list[Hit], asked: frozenset[str]) -> tuple[Piece, ...]:
    groups = [[hits[0]]]
    for earlier, hit in pairwise(hits):
        if hit.entry == earlier.entry + 1:
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return tuple(_piece(group, asked) for group in groups)


def _piece(hits: list[Hit], asked: frozenset[str]) -> Piece:
    found = Counter(word for hit in hits for word in words(hit.passage.text) if word in asked)
    return Piece(
        turns=tuple(dict.fromkeys(hit.passage.turn for hit in hits)),
        text="\n".join(f"{_label(hit.passage)} {hit.passage.text}" for hit in hits),
        score=max(hit.score for hit in hits),
        why=tuple(sorted(found, key=lambda word: (-found[word], word))),
        est_tokens=sum(hit.passage.est_tokens for hit in hits),
    )


def _label(passage: Passage) -> str:
    """Who said it in which turn; of a long turn which part."""
    part = f", part {passage.part + 1} of {passage.parts}" if passage.parts > 1 else ""
    return f"(turn {passage.turn}, {passage.speaker}{part})"


def render(recalled: Recalled) -> str:
    """The block at the end of the request; empty without pieces."""
    return "\n".join((HEADING, *(piece.text for piece in recalled.pieces))) if recalled.pieces else ""
