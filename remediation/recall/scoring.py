"""Scores of passages for a query: by their words, their neighbours, their meaning, and their speakers."""

from collections.abc import Collection, Mapping
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
# Half or twice as much of these changes the share of evidence found by two points at most (LoCoMo, BFCL).
NEIGHBOUR, SECOND_NEIGHBOUR = 0.5, 0.25  # of a passage's score that the ones beside it, and two away, get
# LoCoMo, of 760: 643 with 0.2, 649 with 0.35, by words alone 627; BEAM, of 54: 27, 28, 26.
MEANING = 0.35  # of a score, where the vectors are known
# A cosine, below which texts have nothing to do with each other. LoCoMo: 654 with 0.2 and 0.3; BEAM: 28, 29.
LEAST_LIKENESS = 0.3
# How much more a passage counts whose speaker the query names. By names, LoCoMo's three first dialogs (757 questions):
# 631 with 1, 639 with 1.25, 646 with 1.5, 655 with 2; the two others (741): 587 with 1, 599 with 1.25, 601 with 1.5.
# By "I", BEAM (211): 100 with 1, 111 with 1.7, 115 with 2.5.
NAMED_SPEAKER = 1.5


@dataclass(frozen=True, slots=True)
class Hit:
    entry: int
    passage: Passage


def score(
    archive: Index, weights: Mapping[str, float], meaning: Array | None = None, speakers: Collection[str] = ()
) -> Floats:
    """Score each entry; zero where neither words, neighbours nor the query's ``meaning`` speak for it.

    Passages of the ``speakers``, whom the query names, count more.
    """
    corpus = archive.corpus
    wanted = weightiest(weights, archive.holding(weights), corpus.entries)
    scores = _with_neighbours(rank(wanted, archive.postings(wanted), corpus))
    if meaning is not None:
        scores = _with_meaning(scores, *archive.likeness(meaning))
    scores[archive.entries_by(speakers)] *= NAMED_SPEAKER
    return scores


def _with_meaning(scores: Floats, likeness: Floats, known: NDArray[np.bool_]) -> Floats:
    """Mix both, each as a share of its best. An entry without a vector has its words alone, as all have without any."""
    likeness = np.where(likeness < LEAST_LIKENESS, 0, likeness)
    by_words, by_meaning = (part / max(float(part.max(initial=0)), 1e-9) for part in (scores, likeness))
    return np.where(known, (1 - MEANING) * by_words + MEANING * by_meaning, by_words)


def entries_named_in(archive: Index, text: str) -> NDArray[np.bool_]:
    """Tell of each entry whether ``text`` names what it, or the one beside it, is about: it holds a third of the text's
    words by their rarity, or one and a half times the rarest of them."""
    entries = archive.corpus.entries
    asked = dict.fromkeys(words(text))
    holding = archive.holding(asked)
    telling = {word: idf(entries, holding.get(word, 0)) for word in asked}
    held = archive.postings(holding).sums((telling[word] for word in holding), entries)
    least = min(sum(telling.values()) / 3, 1.5 * max(telling.values(), default=0.0))
    result: NDArray[np.bool_] = held >= max(least, SMALLEST)
    beside = result.copy()
    beside[1:] |= result[:-1]
    beside[:-1] |= result[1:]
    return beside


def _with_neighbours(scores: Floats) -> Floats:
    spread = scores.copy()
    for distance, weight in ((1, NEIGHBOUR), (2, SECOND_NEIGHBOUR)):
        spread[distance:] += weight * scores[:-distance]
        spread[:-distance] += weight * scores[distance:]
    return spread
