"""Passages come back by what they mean, where their vectors are known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from remediation.recall.index import Index
from remediation.recall.meaning import MOST_PARTS, pack, unpack
from remediation.recall.passages import Passage
from remediation.recall.query import Query
from remediation.recall.recall import Allowance, InSight, recall
from remediation.recall.search import search
from remediation.similarity.minilm import WIDTH, Array

TEXTS = ("The doctor is away until Monday.", "A green kite flew over the wall.", "Who waters the flowers?")
QUESTION = "When does the physician return?"  # no word of which any text has


def towards(*axes: int) -> Array:
    """A unit vector between these axes."""
    vector = np.zeros(WIDTH, np.float32)
    vector[list(axes)] = len(axes) ** -0.5
    return vector


def index_of(*texts: str) -> Index:
    return Index(Passage(turn, "user", text, len(text) // 4) for turn, text in enumerate(texts, 1))


def give(index: Index, turn: int, *vectors: Array) -> None:
    rows = unpack(pack(np.stack(vectors)), len(vectors))
    assert rows is not None
    index.give_meaning(turn, rows)


def recalled(index: Index, question: str, meaning: Array | None) -> tuple[int, ...]:
    allowance = Allowance(200, lambda text: len(text) // 4)
    return recall(index, Query(question, meaning=meaning), InSight(), allowance).turns


def test_a_passage_without_a_word_of_the_question_comes_back() -> None:
    index = index_of(*TEXTS)
    for turn, axis in ((1, 0), (2, 1), (3, 2)):
        give(index, turn, towards(axis))
    assert recalled(index, QUESTION, None) == ()
    assert recalled(index, QUESTION, towards(0)) == (1,)
    (hit, *_) = search(index, QUESTION, meaning=towards(0))
    assert hit.hit.passage.turn == 1


def test_without_vectors_words_rank_as_they_do_alone() -> None:
    index = index_of(*TEXTS, "The kite is green.")
    alone = [hit.turns for hit in search(index, "Which kite?")]
    assert [hit.turns for hit in search(index, "Which kite?", meaning=towards(0))] == alone
    give(index, 1, towards(0))
    turns = recalled(index, "Which kite?", towards(0, 5))
    assert {1, 2, 4} <= set(turns), "those that have none are still found by their words"


def test_what_has_nothing_to_do_with_the_question_stays_away() -> None:
    index = index_of(*TEXTS)
    give(index, 2, towards(*range(1, 80), 0))
    assert recalled(index, QUESTION, towards(0)) == ()


def test_turns_that_lack_vectors_are_told_newest_first() -> None:
    index = index_of(*TEXTS)
    long = [Passage(4, "tool", f"line {part}", 2, part, MOST_PARTS + 1) for part in range(MOST_PARTS + 1)]
    index.add(long)
    assert index.lacking_meaning() == [3, 2, 1], "a long result is left to its words"
    give(index, 2, towards(1))
    assert index.lacking_meaning(left_out=[3]) == [1]
    assert index.knows_meaning


def test_bytes_of_other_passages_are_refused() -> None:
    assert unpack(pack(np.stack([towards(1), towards(2)])), 3) is None
    assert unpack(b"damaged", 1) is None


@given(st.integers(0, 2**32 - 1))
def test_a_byte_a_number_tells_nearness_to_a_hundredth(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(6, WIDTH)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = index_of(*(f"text {number}" for number in range(5)))
    for turn in range(1, 6):
        give(index, turn, rows[turn])
    likeness, known = index.likeness(rows[0])
    assert known.all() and np.allclose(likeness, np.maximum(rows[1:] @ rows[0], 0), atol=0.01)
