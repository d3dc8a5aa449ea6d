"""The ledger as a unit of the view."""

from dataclasses import replace

import pytest

from remediation.context import Toolbox, UnitKind, Units
from remediation.strategies.carrying import (
    Carried,
    carry,
    ledger_budget,
    ledger_lines,
    ledger_reserve,
    lost_talk,
    removed_from,
)
from remediation.strategies.masking import OPENING
from remediation.strategies.outcome import is_ledger
from remediation.strategies.stand_ins import stand_in
from remediation.text.marks import BY_RULE
from remediation.text.reading import without_routine
from tests.remediation.building import model, numbered, system, tool, toolbox, user

FACTS = numbered(
    system(), user("Never push to main."), model("The port is 48151."), model("ERROR E1042: disk is full."), user("now")
)


def carried_by(before: Units, after: Units, budget: int, box: Toolbox) -> Carried:
    return carry(before, after, lost_talk(before, after), budget, box)


def test_what_is_lost_is_carried() -> None:
    carried = carried_by(FACTS, (FACTS[0], FACTS[-1]), 100, toolbox())
    text = "\n".join(carried.ledger)
    assert all(needle in text for needle in ("Never push to main", "48151", "E1042"))
    assert is_ledger(carried.units[1])
    assert carried.units[1].source == (2, 3, 4)


def test_what_stands_is_not_carried() -> None:
    assert carried_by(FACTS, FACTS[:-1], 100, toolbox()).ledger == ()


def test_a_ledger_is_read_back() -> None:
    carried = carried_by(FACTS, (FACTS[0], FACTS[-1]), 100, toolbox())
    assert ledger_lines(carried.units) == carried.ledger


def test_an_earlier_ledger_is_merged_and_replaced() -> None:
    box = toolbox()
    once = carried_by(FACTS, (FACTS[0], FACTS[-1]), 100, box).units
    more = (*once, *numbered(model("Host db7.example.org has the data."), user("and now")))
    twice = carried_by(more, (more[0], more[-1]), 100, box)
    assert sum(is_ledger(u) for u in twice.units) == 1
    text = "\n".join(twice.ledger)
    assert "48151" in text
    assert "db7.example.org" in text


@pytest.mark.parametrize("budget", [0, 10, 20, 40, 80])
def test_the_budget_is_kept_the_message_included(budget: int) -> None:
    units = numbered(system(), *(model(f"Host db{i}x{i}.example.org answers.") for i in range(60)), user("now"))
    carried = carried_by(units, (units[0], units[-1]), budget, toolbox())
    assert sum(u.est_tokens for u in carried.units if is_ledger(u)) <= budget


def test_it_follows_a_new_summary() -> None:
    box = toolbox()
    summary = stand_in(UnitKind.SUMMARY, "Long ago.", FACTS[1:4], box, FACTS)
    after = (FACTS[0], summary, FACTS[-1])
    assert is_ledger(carried_by(FACTS, after, 100, box).units[2])


def test_beside_older_accounts_it_follows_the_last() -> None:
    accounts = [stand_in(UnitKind.SUMMARY, f"Turn {n}.", FACTS[n : n + 1], toolbox(), ()) for n in (1, 2)]
    before = (FACTS[0], *accounts, *FACTS[3:])
    carried = carried_by(before, (*before[:3], before[-1]), 100, toolbox())
    assert is_ledger(carried.units[3])


def test_without_a_summary_it_follows_the_system_prompt() -> None:
    assert is_ledger(carried_by(FACTS, (FACTS[0], FACTS[-1]), 100, toolbox()).units[1])
    assert is_ledger(carried_by(FACTS, (), 100, toolbox()).units[0])


def test_a_changed_unit_counts_as_removed() -> None:
    changed = model("The port is secret.", id=FACTS[2].id)
    assert removed_from(FACTS, (*FACTS[:2], changed, *FACTS[3:])) == (FACTS[2],)


def test_important_units_speak_first() -> None:
    units = numbered(
        system(),
        *(model(f"Host db{i}x{i}.example.org answers.") for i in range(60)),
        model("The key file is /etc/app/first.pem now.", priority=1),
        user("now"),
    )
    assert "/etc/app/first.pem" in "\n".join(carried_by(units, (units[0], units[-1]), 60, toolbox()).ledger)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("2026-01-20 10:00:01 INFO took 35 ms", "took "),
        ("10:00:01 DEBUG: ready in 1.5 s", "ready "),
        ("[INFO] /srv/a.txt written", "/srv/a.txt written"),
        ("10:00:01 ERROR took 35 ms", "10:00:01 ERROR took 35 ms"),
        ("We meet at 10:00", "We meet at 10:00"),
        ("INFORMATION desk 35 ms", "INFORMATION desk 35 ms"),
    ],
)
def test_routine_times_do_not_crowd_out_facts(line: str, left: str) -> None:
    assert without_routine(line) == left


def test_a_tenth_of_the_limit() -> None:
    assert ledger_budget(5000) == 500


def test_an_earlier_digest_is_carried_with_its_speakers() -> None:
    text = f"[Summary of earlier turns]\n{BY_RULE}\n3 person: Write to mail@ledger.example.org. […]\n"
    digest = stand_in(UnitKind.SUMMARY, text, FACTS[1:3], toolbox(), FACTS)
    carried = carried_by((digest, *FACTS[4:]), FACTS[4:], 100, toolbox())
    assert carried.ledger == ("Write to mail@ledger.example.org. [3 person]",)


def test_a_line_that_stands_for_old_output_is_no_fact() -> None:
    shown = f"{OPENING}read_file, est. 900 tokens, no longer shown; search_archive finds it.]"
    done = replace(
        tool("short"), messages=(*tool("short").messages[:1], replace(tool("short").messages[1], text=shown))
    )
    assert carried_by((done, *FACTS[4:]), FACTS[4:], 100, toolbox()).ledger == ()


def test_a_ledger_takes_little_beside_an_account_of_talk() -> None:
    text = numbered(*(user(f"Host db{i}.example.org has port {9000 + i}.") for i in range(99)))
    work = numbered(*(tool(f"Host db{i}.example.org has port {9000 + i}.", id=f"t{i}") for i in range(99)))
    assert [ledger_reserve(limit, text) for limit in (600, 5_000, 20_000)] == [60, 100, 400]
    assert ledger_reserve(5_000, work) == ledger_budget(5_000)
