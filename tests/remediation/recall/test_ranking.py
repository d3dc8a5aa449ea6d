from math import log

import numpy as np
import pytest

from remediation.recall.ranking import K1, MOST_PLACES, B, Corpus, Postings, idf, rank, weightiest


def postings(entries: list[int], counts: list[int], lengths: list[int]) -> Postings:
    return Postings([len(entries)], *(np.array(column, np.int32) for column in (entries, counts, lengths)))


def test_the_score_is_the_formula() -> None:
    # 4 entries, 2 hold the word: ln(1 + 2.5 / 2.5) = ln 2. Entry 0 has the mean length, so its norm is k1.
    weights = weightiest({"word": 1.0}, {"word": 2}, 4)
    scores = rank(weights, postings([0, 3], [1, 2], [10, 20]), Corpus(4, 10.0))
    assert scores[0] == pytest.approx(log(2) * (K1 + 1) / (1 + K1))
    assert scores[3] == pytest.approx(log(2) * 2 * (K1 + 1) / (2 + K1 * (1 - B + B * 2)))
    assert scores[1] == scores[2] == 0


def test_a_rare_word_weighs_more_and_none_weighs_less_than_nothing() -> None:
    assert idf(100, 1) > idf(100, 50) > idf(100, 100) > 0


def test_words_that_nobody_said_are_not_looked_up() -> None:
    assert weightiest({"said": 1.0, "unsaid": 5.0}, {"said": 1}, 10) == {"said": idf(10, 1)}


def test_the_work_is_bounded_by_the_places_that_are_read() -> None:
    holding = {"everywhere": MOST_PLACES, "often": MOST_PLACES // 2, "rare": 3}
    assert set(weightiest(dict.fromkeys(holding, 1.0), holding, 2 * MOST_PLACES)) == {"rare", "often"}
    assert set(weightiest({"everywhere": 1.0}, {"everywhere": 2 * MOST_PLACES}, 2 * MOST_PLACES)) == {"everywhere"}
