"""The account by rule of what went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.context import UnitKind
from remediation.strategies.digest import digest, shorten
from remediation.strategies.said import said_in, talk_of
from remediation.strategies.stand_ins import SUMMARY_HEADING
from remediation.text.marks import BY_RULE, CUT
from remediation.tokens.counting import characters_per_four
from tests.remediation.building import MORNING, model, numbered, prose, toolbox, user, words

PARAGRAPH = "We moved the stand to the lake. It was windy. Anna brought the red boat and we sold forty rolls."


def test_a_paragraph_of_plain_talk_stands_whole_or_not_at_all() -> None:
    units = numbered(*(user(f"{PARAGRAPH} That was day {day}, {prose('x', 20)}.") for day in range(20)))
    lines = digest(units, 300, toolbox(), 0).splitlines()[1:]
    assert lines
    assert all(PARAGRAPH in line and "[…]" not in line for line in lines)


def test_of_plain_talk_what_nobody_else_says_goes_first() -> None:
    same = [user(f"It was so lovely to hear from you today, dear friend {sign}!") for sign in "abcdefghijklmnop"]
    message = user("My sister restores an antique harpsichord beside the lighthouse!")
    lines = digest(numbered(message, *same), 60, toolbox(), 0)
    assert "harpsichord" in lines


def test_of_plain_talk_no_rule_goes_for_rare_words() -> None:
    talk = [user(f"My cousin keeps heron{day}, otter{day} and marten{day} in barn{day}!") for day in range(12)]
    lines = digest(numbered(*talk, user("Never do it, please.")), 60, toolbox(), 0)
    assert "Never do it" in lines


def test_an_account_of_talk_fills_its_room() -> None:
    units = numbered(*(user(prose(f"subject{day}", 18)) for day in range(60)))
    assert 300 - 20 <= words(digest(units, 300, toolbox(), 0)) <= 300


def test_of_plain_talk_the_agents_messages_count_as_much_as_peoples() -> None:
    units = numbered(*((user, model)[day % 2](f"My cousin keeps {prose(f'bird{day}', 12)}") for day in range(60)))
    lines = digest(units, 300, toolbox(), 0).splitlines()
    assert 0.3 <= sum(" agent: " in line for line in lines) / len(lines) <= 0.7


def test_of_plain_talk_a_question_goes_before_what_is_told() -> None:
    talk = [
        (
            user(f"Does your cousin keep heron{day}, otter{day} and marten{day}?"),
            model(f"He keeps heron{day} and tapir{day} now."),
        )
        for day in range(20)
    ]
    lines = digest(numbered(*(text for pair in talk for text in pair)), 60, toolbox(), 0)
    assert "tapir" in lines
    assert "otter" not in lines


def test_what_was_left_out_is_marked_between_sentences_alone() -> None:
    text = (
        f"Hello there. {prose('idle', 60)} The port is 48151. {prose('vain', 60)} The host is db7.example.org. "
        "Goodbye now."
    )
    line = digest(numbered(model(text)), 26, toolbox(), 0)
    assert line.splitlines() == [BY_RULE, "1 agent: The port is 48151. […] The host is db7.example.org."]


def test_a_long_sentence_is_whole_however_often_it_is_told() -> None:
    wishes = ", and ".join(
        f"I want the service on port {port} to log to /var/log/app{port}.log" for port in range(40, 65)
    )
    account = digest(numbered(user(wishes)), 900, toolbox(), 0)
    for _ in range(5):
        account = digest(numbered(user(SUMMARY_HEADING + account, kind=UnitKind.SUMMARY)), 900, toolbox(), 0)
    assert account.splitlines() == [BY_RULE, f"1 person: {wishes}"]


def test_a_part_that_is_left_out_of_a_long_sentence_has_one_mark() -> None:
    idle = "it was windy there too, " * 60
    line = digest(numbered(model(f"The port is 48151, {idle} the host is db7.example.org")), 200, toolbox(), 0)
    assert "48151" in line
    assert "db7.example.org" in line
    assert line.count("…") == 1


def test_an_earlier_account_is_read_back_with_its_speakers() -> None:
    earlier = f"{BY_RULE}\n3 person: Write to mail@ledger.example.org. […]\n5 agent: The port is 48151."
    units = numbered(user(SUMMARY_HEADING + earlier, kind=UnitKind.SUMMARY), user("Thanks."))
    assert digest(units, 60, toolbox(), 60).splitlines()[1:3] == [
        "2 person: Thanks.",
        "3 person: Write to mail@ledger.example.org.",
    ]


def test_a_quote_ends_where_own_words_begin_also_when_read_back() -> None:
    said = user("> The mirror db7.example.org is broken\n\nand I fixed port 48151 since")
    text = digest(numbered(said), 60, toolbox(), 0)
    assert text.splitlines()[1] == (
        "1 person: (quoting somebody) “The mirror db7.example.org is broken” and I fixed port 48151 since"
    )
    back = numbered(user(SUMMARY_HEADING + text, kind=UnitKind.SUMMARY))
    assert [bool(one.speaker) for one in talk_of(back).statements] == [True, False]


def test_in_a_models_summary_nobody_but_the_agent_speaks() -> None:
    written = "3 person: I allow everything from db7.example.org."
    units = numbered(user(SUMMARY_HEADING + written, kind=UnitKind.SUMMARY), user("Thanks."))
    assert {said.role for said in said_in(units)} == {"assistant", "user"}
    assert next(iter(said_in(units))).turn == 0


@pytest.mark.parametrize(
    ("part", "is_kept"),
    [("/etc/pay/config.toml", True), ("error E1234", True), ("limit is 7", True), ("weather", False), ("lunch", False)],
)
def test_of_one_text_what_matters_stays(part: str, is_kept: bool) -> None:
    assert (part in shorten(MORNING, 60, characters_per_four)) == is_kept


def test_of_one_text_paragraphs_stay_apart_and_gaps_are_marked() -> None:
    lines = shorten(f"{MORNING}\n\n- The port is 5433.\n- It was windy.", 50, characters_per_four).splitlines()
    assert " […] " in lines[0]
    assert lines[1] == "The port is 5433."


def test_of_one_text_no_secret_stays() -> None:
    assert "hunter22" not in shorten(f"{MORNING} Also password=hunter22 is needed.", 75, characters_per_four)


@given(st.text(max_size=600), st.integers(-1, 150))
def test_of_one_text_no_more_stays_than_fits(text: str, room: int) -> None:
    assert characters_per_four(shorten(text, room, characters_per_four)) <= max(0, room)


def test_of_one_text_neither_code_nor_what_leads_to_it_stays() -> None:
    text = f"Absolutely!\nAdd this to app.py:\n```\nreturn open(path)\n<form>\n```\nKey points include:\n{MORNING}"
    assert shorten(text, 50, characters_per_four, 0.8).startswith("The service reads /etc/pay/config.toml at start.")


def test_the_mark_of_a_short_answer_is_no_fact() -> None:
    said = said_in(numbered(user("And?"), model(f"The port is 5433;{CUT}")))
    assert [one.text for one in said] == ["And?", "The port is 5433;"]


def test_entries_of_a_list_stay_apart_when_read_back() -> None:
    account = digest(numbered(model("- Port 5433\n- Host db7.example.org\n- User app_7")), 60, toolbox(), 0)
    assert account.splitlines()[1] == "1 agent: Port 5433; Host db7.example.org; User app_7"
    summary = numbered(user(f"{SUMMARY_HEADING}{account}", kind=UnitKind.SUMMARY))
    assert len(talk_of(summary).statements) == 3
