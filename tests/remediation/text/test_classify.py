"""What kind a text is, and how much it matters (C2)."""

import time

import pytest

from remediation.context import UnitKind, UnitRole
from remediation.text.classify import classify, priority_of

FENCED = "Here:\n```python\ndef f():\n    x = 1\n    return x\n```"
BARE_CODE = "import os\n\ndef main():\n    value = os.getenv('X');\n    return value\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    x\nValueError: bad'
LOG = "2026-01-20 10:00:01 INFO started\n2026-01-20 10:00:02 ERROR failed\n2026-01-20 10:00:03 INFO done"


@pytest.mark.parametrize(
    ("text", "role", "kind"),
    [
        ("How are you today?", UnitRole.USER, UnitKind.MESSAGE),
        ("We import goods from Spain; for the return we wait.", UnitRole.USER, UnitKind.MESSAGE),
        ("One line ends in a brace {", UnitRole.USER, UnitKind.MESSAGE),
        (FENCED, UnitRole.ASSISTANT, UnitKind.CODE),
        (BARE_CODE, UnitRole.USER, UnitKind.CODE),
        ("A long explanation.\n" * 20 + "```\nx\n```", UnitRole.ASSISTANT, UnitKind.MESSAGE),
        ("const a = 1;\nlet b = 2;\nfunction f() {\n}", UnitRole.USER, UnitKind.CODE),
        ("Plan:\nfirst this, then that", UnitRole.ASSISTANT, UnitKind.PLAN_REF),
        ("## Plan for the week\nrest", UnitRole.ASSISTANT, UnitKind.PLAN_REF),
        ("- [ ] write\n- [x] read\n- [ ] think", UnitRole.ASSISTANT, UnitKind.PLAN_REF),
        ("Step 1: dig.\nStep 2: fill.", UnitRole.ASSISTANT, UnitKind.PLAN_REF),
        ("1. Step 1 is here\n2. Step 2 is there", UnitRole.ASSISTANT, UnitKind.PLAN_REF),
        # Words of people's plans, as document C names them; nothing is left to do here.
        ("This belongs to TODO-12, I think.", UnitRole.USER, UnitKind.PLAN_REF),
        ("TODO: buy milk", UnitRole.USER, UnitKind.PLAN_REF),
        ("I took one step 3 times.", UnitRole.USER, UnitKind.MESSAGE),
        (LOG, UnitRole.USER, UnitKind.LOG),
        (TRACEBACK, UnitRole.USER, UnitKind.LOG),
        ("[ERROR] a\n[WARN] b\n[INFO] c", UnitRole.ASSISTANT, UnitKind.LOG),
        ("at 10:00:00 we met", UnitRole.USER, UnitKind.MESSAGE),
        ("files: 3", UnitRole.TOOL, UnitKind.LOG),
        ("- [ ] a\n- [ ] b", UnitRole.TOOL, UnitKind.LOG),
        (BARE_CODE, UnitRole.TOOL, UnitKind.CODE),
        (LOG, UnitRole.TOOL, UnitKind.LOG),
        ("", UnitRole.USER, UnitKind.OTHER),
        (" \n\t\n", UnitRole.TOOL, UnitKind.OTHER),
    ],
)
def test_kinds(text: str, role: UnitRole, kind: UnitKind) -> None:
    assert classify(text, role) is kind


AREAS = ["To Do List", "Calendar"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", (3, "")),
        ("[P1] hello", (1, "")),
        ("do this #p2 please", (2, "")),
        ("priority: 1", (1, "")),
        ("Priority = 2, I say", (2, "")),
        ("[p3] or rather [P2]", (2, "")),  # the most important tag wins
        ("see my to do list", (1, "To Do List")),
        ("the CALENDAR is full", (1, "Calendar")),
        ("[P3] the calendar", (3, "Calendar")),  # a tag says it explicitly
        ("calendars and recalendar", (3, "")),
        ("color: #p20, priority: 15", (3, "")),
        ("a#p1 is an anchor", (3, "")),
        ("[P4] [P0]", (3, "")),
        ("", (3, "")),
    ],
)
def test_priorities_of_messages(text: str, expected: tuple[int, str]) -> None:
    assert priority_of(text, AREAS, 3) == expected


def test_the_agents_default_holds_without_a_sign() -> None:
    assert priority_of("hello", [], 2) == (2, "")


def test_tool_output_raises_nothing() -> None:
    assert priority_of("[P1] priority: 1 Calendar", AREAS, 3, UnitRole.TOOL) == (3, "")


def test_blank_areas_are_in_no_text() -> None:
    assert priority_of("hello", ["", "  "], 3) == (3, "")


@pytest.mark.parametrize("text", ["priority" + " " * 500_000, "a " * 250_000, 'File "' + "x" * 500_000, "\n" * 500_000])
def test_hostile_texts_are_judged_quickly(text: str) -> None:
    started = time.perf_counter()
    classify(text, UnitRole.USER)
    priority_of(text, ["a a a b"], 3)
    assert time.perf_counter() - started < 1
