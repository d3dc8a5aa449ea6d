"""Finding texts by words: full-text search on PostgreSQL, word match on SQLite, by one function."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from dialogs.context.search import READ_CHARS, matching
from dialogs.models import Agent, Dialog
from remediation.models import RemediationRun, RemovedUnit

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = pytest.mark.parametrize("database", ["default", "lite"], ids=["postgresql", "sqlite"])


class Archive:
    """A dialog's archive in one database, filled with texts; what is found is told by their numbers."""

    def __init__(self, database: str) -> None:
        agent = Agent.objects.using(database).create(id="a", name="A", provider="test", model="test")
        owner = User.objects.using(database).create(username="ann")
        self.dialog = Dialog.objects.using(database).create(owner=owner, agent=agent)
        self.run = RemediationRun.objects.using(database).create(
            dialog=self.dialog, round_number=1, policy="breaking", reason="test", est_before=2, est_after=1,
            base_position=1, view=[], removed=[],
        )  # fmt: skip
        self.rows = RemovedUnit.objects.using(database).filter(dialog=self.dialog)

    def hold(self, *texts: str) -> "Archive":
        for number, text in enumerate(texts):
            self.rows.create(
                run=self.run, dialog=self.dialog, unit_id=f"u{number}", kind="message", role="user", est_tokens=1, text=text
            )  # fmt: skip
        return self

    def find(self, query: str, **options: Any) -> list[int]:
        return [int(row.unit_id[1:]) for row in matching(self.rows, query.split(), **options)]


@pytest.fixture
def archive(database: str, request: pytest.FixtureRequest) -> Archive:
    if database == "lite":
        request.getfixturevalue("lite")
    return Archive(database)


@BOTH
def test_what_holds_more_of_the_words_comes_first_then_the_newest(archive: Archive) -> None:
    archive.hold("the red boat", "a blue sail on a red boat", "green hills", "RED house")
    assert archive.find("blue red") == [1, 3, 0]
    assert archive.find("red boat", every=True) == [1, 0]
    assert archive.find("violet") == []


@BOTH
def test_parts_of_identifiers_and_paths_are_found(archive: Archive) -> None:
    archive.hold("see /srv/app/main_window.py", "error E1042b in depot", "Grüße, 日本語のテスト")
    assert archive.find("window") == [0]
    assert archive.find("E1042") == [1]
    assert archive.find("日本語") == [2]
    assert archive.find("/srv/app") == [0]


@BOTH
def test_odd_words_break_nothing(archive: Archive) -> None:
    archive.hold("plain words")
    for query in ("the", "%%", "a_b", "'; DROP", "(((", "\\\\", "a:*", "!x", "<->", "'", "& | !"):
        assert archive.find(query) == archive.find(query, every=True) == [], query


@BOTH
def test_the_whole_of_a_long_text_is_searched(archive: Archive) -> None:
    """Every word of it another: more lexemes than PostgreSQL puts into one vector."""
    archive.hold(" ".join(f"w{number:06d}" for number in range(200_000)) + " heron", "short")
    assert archive.find("heron") == [0]
    assert archive.find("w000003 w199999", every=True) == [0]


@pytest.mark.parametrize("database", ["default"])
def test_postgresql_finds_other_forms_of_a_word_and_ranks(archive: Archive) -> None:
    archive.hold(
        "The pump failed.",
        "Much was said about pumps, valves and other things in that long meeting.",
        "Pump, pump, pump: all about the pump.",
    )
    assert archive.find("pumps failing") == [0, 2, 1]
    assert archive.find("failing pumps", every=True) == [0]
    assert archive.find("pump") == [2, 1, 0]


@pytest.mark.parametrize("text", ["hyphens", "addresses", "Chinese"])
@pytest.mark.django_db
def test_the_densest_texts_stay_below_what_a_vector_may_have(text: str) -> None:
    """Every word another one, and several lexemes to a word: PostgreSQL refuses a vector of more than 1 MB."""
    words = {
        "hyphens": "-".join(f"{number:x}x" for number in range(30_000)),
        "addresses": " ".join(f"h{number:x}.de/{number:x}" for number in range(20_000)),
        "Chinese": " ".join(chr(0x4E00 + n % 20_000) + chr(0x4E00 + n // 20_000) for n in range(40_000)),
    }[text][:READ_CHARS]
    with connection.cursor() as cursor:
        cursor.execute("SELECT length(to_tsvector('english', %s))", [words])
        assert cursor.fetchone()[0] > 1_000
