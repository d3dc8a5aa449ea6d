"""Markdown's marks are left out of passages, and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.recall.plain_passages import without_marks
from remediation.recall.snippets import Part, snippet


def read(text: str) -> str:
    return "".join(part.text for part in without_marks([Part(text, False)]))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("## The **harbour** dues", "The harbour dues"),
        ("…all of it.\n\n### Then\n> a *quoted* ~~word~~", "…all of it.\n\nThen\na quoted word"),
        ("Call `dues(**ships)` or ``a`` first", "Call dues(**ships) or a first"),
        ("See [the list](https://a.example/b_c) of __all__ _ships_.", "See the list of all ships."),
        ("![a map](https://a.example/x.png) here", "a map here"),
        ("```python\nfor ship in ships:\n```\ndone", "for ship in ships:\ndone"),
        ("2 * 3 * 4, a*b*c, snake_case_name, a[0]", "2 * 3 * 4, a*b*c, snake_case_name, a[0]"),
        ("* one\n- two\n1. three", "* one\n- two\n1. three"),
        ("```dues``` are due", "```dues``` are due"),
        ("cut **off", "cut **off"),
        ("", ""),
    ],
)
def test_a_passage_is_read_without_marks(text: str, plain: str) -> None:
    assert read(text) == plain


def test_what_was_looked_for_stays_marked() -> None:
    parts = without_marks(snippet("The **harbour** [dues](https://a.example/harbour)", {"harbour"}))
    assert "".join(part.text for part in parts) == "The harbour [dues](https://a.example/harbour)"
    assert [part.text for part in parts if part.is_match] == ["harbour", "https://a.example/harbour"]


@given(st.text(alphabet="ab *_`~#>\n", max_size=400))
def test_no_word_is_left_out(text: str) -> None:
    words = re.sub(r"^[ \t]{0,3}(`{3,}[^`\n]*$|~{3,}.*)", "", text, flags=re.M)  # a fence names a language
    assert re.sub("[^ab]", "", read(text)) == re.sub("[^ab]", "", words)
