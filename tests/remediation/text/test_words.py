import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.text.words import FUNCTION_WORDS, LONGEST_WORD, stem, words


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("paintings", "I painted it"),
        ("activities", "an activity"),
        ("tried", "she tries"),
        ("Buchungen", "Ihre Buchung"),
        ("Katze", "die Katzen"),
        ("GRÜSSE", "Grüße aus Köln"),
        ("parse url", "parseURL(text)"),
        ("max retries", "max_retries=5"),
        ("parseURL", "call parseURL() twice"),
        ("config", "src/app/config.py"),
        ("src/app/config.py", "edit src/app/config.py:12"),
        ("20 May", "on May 20th"),
        ("1250", "it costs 1,250 euros"),
        ("2024-05-20", "on 2024-05-20."),
        ("reservation 4WQ150", '{"reservation_id": "4WQ150"}'),
        ("北京", "我昨天去了北京大学"),
        ("東京 tower", "東京tower is high"),
        ("don't panic", "no panic"),
    ],
)
def test_a_question_and_its_answer_have_a_word_in_common(asked: str, text: str) -> None:
    assert set(words(asked)) & set(words(text))


@pytest.mark.parametrize(("one", "other"), [("Nanjing", "Nan jing"), ("北京", "南京"), ("cat", "dog"), ("4711", "471")])
def test_different_things_have_no_word_in_common(one: str, other: str) -> None:
    assert not set(words(one)) & set(words(other))


def test_function_words_are_no_words() -> None:
    assert words("What is it that you have when we are there?") == []
    assert words("Was ist das, und wo sind wir?") == []


def test_contractions_are_no_words() -> None:
    assert words("We've said they’re late, and I don't, it's mine, she'll see") == words("said late mine see")


def test_encoded_data_costs_little() -> None:
    assert len(words("aB3" * 100_000)) < 300
    assert len(words("北京大学" * 1_000)) == 3_999


def test_an_identifier_is_found_whole_and_by_its_parts() -> None:
    assert set(words("credit_card_4421486")) == {"credit", "card", "4421486", "credit_card_4421486"}


@given(st.text())
def test_any_text_has_words_that_can_be_asked_for_again(text: str) -> None:
    result = words(text)
    assert words(text) == result
    assert all(result)
    assert all(len(word) <= 3 * LONGEST_WORD for word in result)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20))
def test_a_stem_is_never_shorter_than_three_letters_or_the_word(word: str) -> None:
    assert len(stem(word)) >= min(len(word), 3)


def test_every_function_word_is_written_as_it_is_compared() -> None:
    assert all(word == word.casefold() for word in FUNCTION_WORDS)
