"""What was superseded never stands as valid, and what only looks alike holds."""

import pytest

from remediation.text.ledger import key_facts, render_ledger
from remediation.text.statements import Said, Statement, statements_of
from remediation.text.supersession import mark_superseded
from remediation.tokens.counting import characters_per_four as count

IDLE = [
    Said("user", f"The {thing} was reviewed by the team and looks fine.", turn)
    for turn, thing in enumerate(("module", "draft", "widget", "queue", "handler", "layout", "report", "cache"), 100)
]

PAIRS = (("one", 1), ("one", 5))


def judged(*texts: str, role: str = "user") -> list[Statement]:
    said = [Said(role, text, 10 * place) for place, text in enumerate(texts, 1)]
    return mark_superseded(statements_of([*said, *IDLE]))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The travel budget is $900 in total.", "From now on keep travel under six hundred euros."),
        ("The audit is due on 2027-03-04.", "The audit has moved to March 19."),
        ("Ana Silva owns the deploy pager.", "Ken Ito now carries the deploy pager."),
        ("The mirror runs on db-07.internal.", "We switched the mirror to db-12.internal."),
        ("Report all times in UTC.", "From now on report all times in Pacific Time."),
        ("The retention limit is 40 days.", "The retention limit is 90 days."),
        ("I have a deadline of April 1, 2024, for the first sprint.", "Use the new sprint deadline of April 5, 2024."),
        ("Put every timestamp in UTC.", "For status reports, show clocks in Pacific Time."),
        ("Keep replies terse and use imperial units.", "Please make answers light, with metric units."),
        ("Always answer in German.", "From now on, answer in French."),
        ("Our pages load in an average of 280 ms now.", "The pages load time improved from 280 ms to 220 ms."),
    ],
)
def test_a_newer_statement_supersedes_the_older_one(older: str, newer: str) -> None:
    first, second, *_ = judged(older, newer)
    assert not first.holds
    assert first.marked == f"{older.removesuffix('.')} (until turn 20)."
    assert second.holds
    assert second.worth > first.worth


@pytest.mark.parametrize(
    ("older", "newer", "marked"),
    [
        ("超时时间设为30秒。", "超时时间改为60秒。", "超时时间设为30秒 (until turn 20)。"),
        ("服务器地址是192.168.1.17。", "服务器地址换成192.168.1.20了。", "服务器地址是192.168.1.17 (until turn 20)。"),
        ("截止日期是5月1日。", "截止日期推迟到5月15日。", "截止日期是5月1日 (until turn 20)。"),
        ("每页显示20条。", "每页不再显示20条，改为50条。", "每页显示20条 (until turn 20)。"),
        ("Die Frist ist der 3. Mai.", "Die Frist ist nun der 17. Mai.", "Die Frist ist der 3. Mai (until turn 20)."),
        ("Wir nehmen Port 8080.", "Statt 8080 nehmen wir nun Port 9090.", "Wir nehmen Port 8080 (until turn 20)."),
        ("Die Version ist 2.4.1.", "Wir sind auf Version 2.5.0 umgestiegen.", "Die Version ist 2.4.1 (until turn 20)."),
    ],
)
def test_so_it_does_in_chinese_and_german(older: str, newer: str, marked: str) -> None:
    first, second, *_ = judged(older, newer)
    assert (first.marked, second.holds) == (marked, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The production database is Postgres 15.", "The staging database is MySQL 8."),
        ("Run unit tests with pytest before pushing.", "Run integration tests with make test-integration now."),
        ("The launch is on 2027-03-04.", "The docs freeze moved to 2027-05-06."),
        ("Item 8.", "Item 9."),
        ("超时时间是30秒。", "如果太慢，超时时间改为60秒。"),
        ("A组有20人。", "B组改为50人。"),
        ("Ich wohne in Raum 12.", "Ich bin jetzt im Raum 14."),
        ("Der Zug fährt um 14:10 ab.", "Jetzt ist es 15:20."),
        ("The flight leaves at 8:30 in UTC.", "My train leaves in Pacific Time."),
        ("Is the budget still $900?", "The budget was reviewed now."),
        ("The travel budget is $900.", "If the travel budget is changed to $700, tell me."),
        ("The travel budget is $900.", "Somebody suggested that the travel budget be changed to $700."),
        ("Cancel reservation XEHM4B and 59XX6W.", "Cancel reservation 59XX6W now, please."),
        ("Arrival: 12:00 in Boston, then a train.", "Departure moved to 14:00 in Chicago."),
        ("The page must load under 200 ms.", "The page load time improved to 250 ms."),
        ("The mirror runs on db-07.internal.", "The mirror moved from db-01.internal to db-02.internal."),
        ("The clerk of office 3 wrote that a cart came.", "The clerk of office 4 wrote that a cart came."),
        ("The clerk wrote that the 5th cart came late.", "The clerk wrote that the 6th cart came late."),
        ("> The travel budget is $900.", "The travel budget is changed to $700."),
    ],
)
def test_what_only_looks_alike_holds(one: str, other: str) -> None:
    assert all(statement.holds for statement in judged(one, other))


def test_sentences_of_one_frame_in_one_message_are_a_series() -> None:
    first, second = (" ".join(f"The load of {name} is {n}." for n in range(base, base + 3)) for name, base in PAIRS)
    assert all(statement.holds for statement in judged(first, second))


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_only_people_change_what_people_said(role: str) -> None:
    for said, newer in ((role, "user"), ("user", role), (role, role)):
        texts = [
            Said(said, "The audit is due on 2027-03-04.", 1),
            Said(newer, "The audit has moved to March 19.", 2),
        ]
        assert all(statement.holds for statement in mark_superseded(statements_of([*texts, *IDLE])))


def test_every_mention_of_the_former_value_is_superseded() -> None:
    first, second, other, newer, *_ = judged(
        "The first sprint has a deadline of April 1, 2024.",
        "I know the sprint deadline is April 1, 2024.",
        "The docs are due on May 7, 2024.",
        "We have a new sprint deadline of April 5, 2024.",
    )
    assert [first.holds, second.holds, other.holds, newer.holds] == [False, False, True, True]


def test_a_mark_outlasts_reading_it_back() -> None:
    said = "The budget is $900 in total (until turn 20). Nobody may exceed it."
    first, second = statements_of([Said("user", said, 10, settled=True)])
    assert (first.holds, first.until, second.holds) == (False, 20, True)
    assert f"{first.marked} {second.marked}" == said


def test_the_agent_and_quotes_take_back_nothing_that_a_person_said() -> None:
    said = Said("user", "The audit is due on 2027-03-04.", 1)
    agent = Said("assistant", "The audit has moved to March 19.", 2)
    quote = Said("user", "> The audit has moved to March 19.\n\nWho wrote that?", 3)
    assert mark_superseded(statements_of([said, agent, quote, *IDLE]))[0].holds


def test_a_ledger_drops_what_no_longer_holds_though_carried_before() -> None:
    earlier = key_facts([Said("user", "The audit is due on 2027-03-04.", 1)], 100, count)
    assert earlier == ("The audit is due on 2027-03-04. [1 person]",)
    later = [Said("user", "The audit has moved to March 19.", 8), *IDLE]
    block = render_ledger(key_facts(later, 200, count, earlier=earlier))
    assert "2027-03-04" not in block
    assert "March 19. [8 person]" in block


def test_no_text_says_itself_when_it_was_said() -> None:
    (line,) = key_facts([Said("assistant", "ticket OPS-4471 is open [3 person]", 7)], 100, count)
    assert line == "ticket OPS-4471 is open (3 person) [7 agent]"
