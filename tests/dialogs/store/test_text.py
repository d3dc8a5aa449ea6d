"""Texts that both databases can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.models import Turn
from dialogs.store.change import open_change
from dialogs.store.text import as_sentence, storable, unstorable_reason
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

ANY = st.text(st.characters(categories=("L", "Cs", "Cc")) | st.sampled_from("\x00\ud800"))


@given(ANY)
def test_every_text_can_be_made_storable(text: str) -> None:
    stored = storable(text)
    assert unstorable_reason(stored) == ""
    assert len(stored) == len(text)
    assert stored == text or unstorable_reason(text)


@pytest.mark.parametrize(("text", "word"), [("a\x00b", "NUL"), ("a\ud800b", "surrogate"), ("ä\U0001f600", "")])
def test_the_reason_names_the_character(text: str, word: str) -> None:
    assert word in unstorable_reason(text)
    assert bool(word) == bool(unstorable_reason(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no credit", "no credit."),
        ("Why?", "Why?"),
        ("{}", "{}."),
        ("It said: 余额不足。", "It said: 余额不足。"),
        ("", ""),
    ],
)
def test_a_sentence_can_follow_a_text(text: str, sentence: str) -> None:
    assert as_sentence(text) == sentence


@pytest.mark.django_db(transaction=True)
def test_a_turn_is_stored_whatever_a_model_sends(script: Script) -> None:
    dialog = make_dialog()
    with open_change(dialog.pk) as change:
        change.turn(Turn.Role.ASSISTANT, Turn.Status.COMPLETE, text="a\x00b\ud800c")
    assert dialog.turns.get().text == "a\ufffdb?c"
