"""What a person allows is what they see."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.visible_text import MOST_MARKS, is_blank, visible

HIDDEN = [
    "\t", "\r", "\x00", "\x1b", "\x7f", "\x85",  # controls
    "\u00a0", "\u1680", "\u2003", "\u2009", "\u202f", "\u205f", "\u3000",  # blanks
    "\u2028", "\u2029",  # lines
    "\u00ad", "\u061c", "\u200b", "\u200d", "\u200e", "\u202e", "\u2060", "\u2064", "\u2066", "\ufeff",  # formats
    "\ufff9", "\U0001d173", "\U000e0001", "\U000e0041",
    "\u115f", "\u1160", "\u3164", "\uffa0",  # letters without a glyph
    "\u034f", "\u17b4", "\u180b", "\ufe0f", "\U000e0100",  # marks without one
    "\u2800", "\u00b4", "\u2044", "\u2215", "\u2500", "\U0001f600",  # blank or likely symbols
    "\ue000", "\U000f0000", "\ud800", "\u0378", "\ufffe",  # private, broken, not assigned
]  # fmt: skip  # a line for each kind
PLAIN = [
    "Straße, naïve coöperation",
    "元気ですか。「はい」、了解！",
    "Привет — мир",
    "שלום",
    "مرحبا",
    "हिन्दी में",
    "ภาษาไทย",
    "e\u0301",
    "€ 12",
]


@pytest.mark.parametrize("character", HIDDEN, ids=lambda character: json.dumps(character)[1:-1])
def test_what_no_eye_sees_is_escaped(character: str) -> None:
    for text in (character, f"a{character}b", f" {character} ", f"é{character}é"):
        assert visible(text) == text.replace(character, json.dumps(character)[1:-1])


@pytest.mark.parametrize("text", PLAIN)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("text", ["\u0301", " \u0301", "/\u0338", '"\u20dd', "a\u20dd", "1\u0336", "€\u0301"])
def test_a_mark_needs_a_letter(text: str) -> None:
    assert visible(text).isprintable()
    assert not any(unicodedata.category(one)[0] == "M" for one in visible(text))


def test_a_heap_of_marks_is_cut() -> None:
    assert visible("a" + "\u0301" * 50) == "a" + "\u0301" * MOST_MARKS + r"\u0301" * (50 - MOST_MARKS)


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_seen_says_exactly_what_it_stands_for(text: str) -> None:
    seen = visible(json.dumps(text, ensure_ascii=False))
    assert json.loads(seen) == text
    assert all(one == "\n" or one.isprintable() for one in seen)
    assert visible(seen) == seen


@pytest.mark.parametrize("text", ["", " \n\t", "\u00a0", "\u200b\ufeff", " \u2060\u00ad", "\u2800", "\u3164"])
def test_what_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}a") and not is_blank(f"0{text}")
