"""Values of tools' results stand beside their names."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from remediation.text.coverage import Shown
from remediation.text.listing import arguments_in_short, listing
from remediation.text.marks import MARKS
from remediation.tokens.counting import characters_per_four as count

FLIGHTS = json.dumps(
    [
        {"flight_number": "HAT069", "departs": "06:00:00", "prices": {"economy": 1121}},
        {"flight_number": "HAT083", "departs": "01:00:00", "prices": {"economy": 1100}},
        {"flight_number": "HAT100", "departs": "09:30:00", "prices": {"economy": 1245}},
    ]
)
TABLE = "  id  | last_out\n------+------------\n 1700 | 2023-10-30\n 3400 | 2026-03-03\n(2 rows)"


@pytest.mark.parametrize(
    ("result", "values"),
    [
        (FLIGHTS, "flight_number HAT069, departs 06:00:00, economy 1121; flight_number HAT083, 01:00:00, 1100; "
         "HAT100, 09:30:00, 1245"),
        (json.dumps({"zip": "78750", "orders": ["W4711", "W4712"]}, indent=1), "zip 78750; orders W4711; W4712"),
        (json.dumps({"card_4421": {"last_four": "7447"}}), "last_four 7447"),  # what a row is called is no value
        (TABLE, "id 1700, last_out 2023-10-30; id 3400, 2026-03-03"),
        ("Not After : Dec  1 18:44:10 GMT", "Not After Dec 1 18:44:10"),
        ("upload of 22/Nov/2026", "upload of 22/Nov/2026"),
        ("  00:c5:81:02:76:3c:09:28:11:\n0000 4d5a 9000 0300 04ff ffff", ""),  # bytes
        ("MAC 00:1a:2b:3c:4d:5e", "MAC 00:1a:2b:3c:4d:5e"),
        ("commit e83fa10 on fix/pool", "commit e83fa10"),
        ("autovacuum_enabled=false, growing=sometimes", "autovacuum_enabled=false"),
        ("/etc/cron.d/ingest:7 runs calibrate", "/etc/cron.d/ingest:7"),
        ("done", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_a_value_is_listed_with_the_name_in_its_row(result: str, values: str) -> None:
    assert listing(result, 100, count) == values


def test_what_stands_elsewhere_is_not_listed_again() -> None:
    assert listing(FLIGHTS, 100, count, Shown("HAT069 leaves at 06:00:00 for 1121")).startswith("flight_number HAT083")


def test_of_a_result_that_was_cut_only_the_result_is_listed() -> None:
    cut = "[Cut, since it has est. 2,375 tokens: its beginning and its end.]\nport 8443\n[… 1,200 lines left out …]"
    assert listing(cut, 100, count) == "port 8443"


def test_secrets_are_not_listed() -> None:
    assert "hunter22" not in listing('{"password": "hunter22x", "port": 8443}', 100, count)


def test_a_call_is_told_with_its_short_arguments() -> None:
    arguments = json.dumps({"origin": "JFK", "date": "2024-05-20", "text": "x" * 500, "seats": 2})
    assert arguments_in_short(arguments) == "JFK, 2024-05-20, 2"
    command = 'grep -rn "def due" src |\n head'
    assert arguments_in_short(json.dumps({"host": "shop", "cmd": command})) == 'shop, grep -rn "def due" src | head'


@given(
    some.lists(
        some.sampled_from(['"', ":", "{", "}", "[3 user]", "port ", "8443", "W4711", "\n", ", ", "|", "--", " "])
    ),
    some.integers(0, 40),
)
def test_a_listing_keeps_to_its_room_and_holds_no_mark(parts: list[str], room: int) -> None:
    values = listing("".join(parts), room, count)
    assert count(values) <= room
    assert not MARKS.search(values)
