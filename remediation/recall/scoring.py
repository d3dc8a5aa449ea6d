"""Scores of passages for a query: by their words, those of the best hits, their neighbours, and their meaning."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remediation.recall.index import Index
from remediation.recall.passages import Passage
from remediation.recall.ranking import Floats, idf, rank, weightiest
from remediation.similarity.minilm import Array
from remediation.text.words import words

FARTHEST_NEIGHBOUR = 2  # entries away, that a passage speaks for
SMALLEST = 1e-9  # more than nothing


@dataclass(frozen=True, slots=True)
class Tuning:
    """None of the defaults is sharp: half or twice as much changes the share of evidence found
    by two points at most."""

    neighbour: float = 0.5  # of a passage's score that the ones beside it get
    second_neighbour: float = 0.25  # that the ones two away get
    feedback_hits: int = 5  # best passages whose words are asked for in the second round
    feedback_words: int = 20  # the most telling of these
    feedback_weight: float = 0.3  # of the best of them, beside 1 for a word of the query; the others have less
    # LoCoMo, of 760: 643 with 0.2, 649 with 0.35, by words alone 627; BEAM, of 54: 27, 28, 26.
    meaning: float = 0.35  # of a score, where the vectors are known
    # A cosine, below which texts have nothing to do with each other. LoCoMo: 654 with 0.2 and 0.3; BEAM: 28, 29.
    least_likeness: float = 0.3


DEFAULT = Tuning()


@dataclass(frozen=True, slots=True)
class Hit:
    entry: int
    score: float
    passage: Passage


def score(
    archive: Index, weights: Mapping[str, float], tuning: Tuning = DEFAULT, meaning: Array | None = None
) -> Floats:
    """Score each entry; zero where neither words, neighbours nor the query's ``meaning`` speak for it."""
    corpus = archive.corpus
    wanted = weightiest(weights, archive.holding(weights), corpus.entries)
    scores = rank(wanted, archive.postings(wanted), corpus)
    further = _further_words(archive, scores, weights, tuning)
    scores += rank(further, archive.postings(further), corpus)
    scores = _with_neighbours(scores, tuning)
    return scores if meaning is None else _with_meaning(scores, *archive.likeness(meaning), tuning)


def _with_meaning(scores: Floats, likeness: Floats, known: NDArray[np.bool_], tuning: Tuning) -> Floats:
    """Mix both, each as a share of its best. An entry without a vector has its words alone, as all have without any."""
    likeness = np.where(likeness < tuning.least_likeness, 0, likeness)
    by_words, by_meaning = (part / max(float(part.max(initial=0)), 1e-9) for part in (scores, likeness))
    return np.where(known, (1 - tuning.meaning) * by_words + tuning.meaning * by_meaning, by_words)


def named(archive: Index, text: str) -> NDArray[np.bool_]:
    """Tell of each entry whether ``text`` names what it, or the one beside it, is about: it holds a third of the text's
    words by their rarity, or one and a half times the rarest of them."""
    entries = archive.corpus.entries
    asked = dict.fromkeys(words(text))
    holding = archive.holding(asked)
    telling = {word: idf(entries, holding.get(word, 0)) for word in asked}
    held = np.zeros(entries)
    for word, postings in archive.postings(holding).items():
        held[postings.entries] += telling[word]
    least = min(sum(telling.values()) / 3, 1.5 * max(telling.values(), default=0.0))
    result: NDArray[np.bool_] = held >= max(least, SMALLEST)
    beside = result.copy()
    beside[1:] |= result[:-1]
    beside[:-1] |= result[1:]
    return beside


def _further_words(archive: Index, scores: Floats, weights: Mapping[str, float], tuning: Tuning) -> dict[str, float]:
    """The telling words of the best hits that the query lacks, weighed by their hits' scores: names and rare terms, by
    which the second half of an answer is found. A word that one passage alone holds leads nowhere else."""
    hits = top(scores, tuning.feedback_hits).tolist()
    total = sum(scores[entry] for entry in hits)
    shares: dict[str, float] = defaultdict(float)
    for entry, passage in zip(hits, archive.passages(hits), strict=True):
        for word in set(words(passage.text)) - weights.keys():
            shares[word] += float(scores[entry] / total)
    entries = archive.corpus.entries
    holding = {word: number for word, number in archive.holding(shares).items() if number > 1}
    telling = {word: shares[word] * idf(entries, number) for word, number in holding.items()}
    best = sorted(telling, key=lambda word: (-telling[word], word))[: tuning.feedback_words]
    most = telling[best[0]] if best else 1.0
    weighed = {word: tuning.feedback_weight * telling[word] / most for word in best}
    return weightiest(weighed, holding, entries)


def _with_neighbours(scores: Floats, tuning: Tuning) -> Floats:
    spread = scores.copy()
    for distance, weight in ((1, tuning.neighbour), (2, tuning.second_neighbour)):
        spread[distance:] += weight * scores[:-distance]
        spread[:-distance] += weight * scores[distance:]
    return spread


def top(scores: Floats, number: int) -> NDArray[np.intp]:
    """Return the best entries, best first and the earlier of equals first, without those that score zero."""
    result = np.flatnonzero(scores > 0)
    if len(result) > number > 0:
        values = scores[result]
        result = result[values >= np.partition(values, len(values) - number)[len(values) - number]]
    return result[np.argsort(-scores[result], kind="stable")][:number]
