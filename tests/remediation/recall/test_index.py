"""What is indexed at once and what follows singly is found alike."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from remediation.recall.index import Index
from remediation.recall.passages import Passage
from remediation.recall.scoring import score

TEXTS = st.lists(
    st.lists(st.sampled_from("red green blue amber rust the".split()), max_size=6).map(" ".join), max_size=8
)


@given(TEXTS, st.integers(0, 8))
def test_it_does_not_matter_how_much_came_first(texts: list[str], first: int) -> None:
    passages = [Passage(number, "user", text, 1) for number, text in enumerate(texts)]
    whole, grown = Index(passages), Index(passages[:first])
    for passage in passages[first:]:
        grown.add([passage])
    asked = {"red": 1.0, "blue": 0.5, "unsaid": 1.0}
    assert whole.holding(asked) == grown.holding(asked)
    assert whole.holding(["red"]).get("red", 0) == sum("red" in text.split() for text in texts)
    assert whole.corpus == grown.corpus
    own, other = (index.postings(whole.holding(asked)) for index in (whole, grown))
    assert own.sizes == other.sizes
    assert np.array_equal(own.entries, other.entries)
    assert np.array_equal(own.counts, other.counts)
    assert np.array_equal(own.lengths, other.lengths)
    if texts:
        assert np.array_equal(score(whole, asked), score(grown, asked))
