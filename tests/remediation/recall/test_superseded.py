"""What comes back although a person said something newer since bears a mark, wherever the newer message stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.recall.index import Index
from remediation.recall.passages import passages_of
from remediation.recall.query import Query
from remediation.recall.recall import Allowance, InSight, Recalled, recall
from remediation.tokens.counting import count_characters

CHATTER = ("We had soup for lunch.", "It rained all morning.", "The train was late again.", "Somebody sang outside.")
LAUNCH = "The launch date is 2027-03-19 in Bergen. Tell the printer."
MOVED = "Update: the launch date moved to 2027-08-21."
BRANCH = "Branch spike/pdtuq-60 is based on the old base and must stay unpushed."
REBASED = "We rebased onto spike/ldtzv-56; next is the migration script."


def index_of(*said: str, by: str = "user") -> Index:
    """Make an archive in which small talk stands between the messages. Message ``number`` is turn 5 * number - 4."""
    turns = [text for one in said for text in (one, *CHATTER)]
    speakers = ["user", *[by] * (len(turns) - 1)]
    return Index(
        passage
        for turn, (speaker, text) in enumerate(zip(speakers, turns, strict=True), 1)
        for passage in passages_of(turn, speaker, text, count_characters)
    )


def asked(archive: Index, question: str, in_sight: tuple[int, ...] = (), room: int = 200) -> Recalled:
    return recall(archive, Query(question), InSight(in_sight), Allowance(room, count_characters))


@pytest.mark.parametrize("in_sight", [(), (6,)], ids=["both come back", "the newer one stands in the view"])
def test_only_the_sentence_that_no_longer_holds_is_marked(in_sight: tuple[int, ...]) -> None:
    recalled = asked(index_of(LAUNCH, MOVED), "When is the launch date?", in_sight)
    assert "[1 user] The launch date is 2027-03-19 in Bergen (until turn 6). Tell the printer." in recalled.text
    assert "moved to 2027-08-21." in recalled.text or in_sight


def test_the_newer_message_may_have_no_word_of_the_question() -> None:
    recalled = asked(index_of(BRANCH, REBASED), "Which branch must stay unpushed?")
    assert "must stay unpushed (until turn 6)." in recalled.text
    assert 6 not in recalled.turns


@pytest.mark.parametrize("by", ["assistant", "read_file"])
def test_only_people_supersede(by: str) -> None:
    assert "until turn" not in asked(index_of(LAUNCH, MOVED, by=by), "When is the launch date?").text


def test_what_was_said_before_supersedes_nothing() -> None:
    assert "until turn" not in asked(index_of(MOVED, LAUNCH), "When is the launch date?").text


def test_the_same_sentence_with_another_number_supersedes_but_reports_do_not() -> None:
    repeated = "The launch is on 2027-03-19 in Bergen.", "The launch is on 2027-08-21 in Bergen."
    assert "The launch is on 2027-03-19 in Bergen (until turn 6)." in asked(index_of(*repeated), "Launch?").text
    reports = [f"The temperature in the hall is {degrees}." for degrees in range(12, 32)]
    found = asked(index_of(*reports), "Temperature in the hall?", room=900).found
    assert sum(not passage.superseded for passage in found) > 10, "each report of a series holds for its time"


@given(st.integers(0, 200))
def test_marks_stay_within_the_room(room: int) -> None:
    recalled = asked(index_of(LAUNCH, MOVED, BRANCH, REBASED), "Launch date? Branch unpushed?", room=room)
    assert count_characters(recalled.text) <= recalled.est_tokens <= room
