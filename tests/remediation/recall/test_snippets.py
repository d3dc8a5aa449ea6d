from remediation.recall.query import Query, query_weights
from remediation.recall.snippets import SNIPPET_CHARS, matching_words, snippet

TEXT = "The clerk went home. " * 40 + "Priya's badge has the number QX-4471 since May. " + "Nothing else came. " * 40


def asked(question: str) -> frozenset[str]:
    return frozenset(query_weights(Query(question)))


def marked(text: str, question: str) -> list[str]:
    return [part.text for part in snippet(text, asked(question)) if part.is_match]


def test_it_stands_where_the_words_stand_together() -> None:
    parts = snippet(TEXT, asked("Which numbers do badges have, such as Priya's?"))
    text = "".join(part.text for part in parts)
    assert "badge has the number QX-4471" in text
    assert text.startswith("…") and text.endswith("…")
    assert len(text) <= SNIPPET_CHARS + 2
    assert [part.text for part in parts if part.is_match] == ["Priya's", "badge", "number"]


def test_a_short_text_is_whole() -> None:
    assert [(part.text, part.is_match) for part in snippet("All is well.", asked("zebra"))] == [("All is well.", False)]
    assert snippet("", asked("zebra")) == ()
    assert marked("Open config/lease_table.py now.", "lease table") == ["config/lease_table.py"]


def test_each_matching_word_is_named_once() -> None:
    assert matching_words("Badge, badge and BADGES of Kim", asked("Kim's badge")) == ("badge", "BADGES", "Kim")
