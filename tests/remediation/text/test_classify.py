"""What kind a text is, and how much it matters."""

import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import celery
import django
import pytest

import dialogs
import remediation
from dominds.llm.messages import Message, Role, ToolCall
from remediation.context import Unit, UnitKind, UnitRole
from remediation.text.classify import classify, kind_of, priority_of

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
        # Entries as people write them in plans; TODO is part of the sample, and nothing is left to do here.
        ("TODO-12: write the tests\nTODO-13: read them", UnitRole.USER, UnitKind.PLAN_REF),
        ("TODO: buy milk", UnitRole.USER, UnitKind.PLAN_REF),
        ("This belongs to TODO-12, I think.", UnitRole.USER, UnitKind.MESSAGE),
        ("TASK-4711 is about the login page.\nIt is slow.", UnitRole.USER, UnitKind.MESSAGE),
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


PATHS = "\n".join(f"/srv/app/{name}/import.py" for name in ("class", "def", "return", "tasks", "billing"))
TEST_RUN = (
    "====== test session starts ======\ncollected 3 items\n\ntests/test_import.py::test_a PASSED [ 33%]\n"
    "tests/test_import.py::test_from_file PASSED [ 66%]\ntests/test_import.py::test_b[x=1] FAILED [100%]\n\n"
    "    def test_b(x):\n>       assert x == 2\nE       assert 1 == 2\n\ntests/test_import.py:4: AssertionError\n"
    "FAILED tests/test_import.py::test_b[x=1] - assert 1 == 2"
)


@pytest.mark.parametrize("printed", [PATHS, TEST_RUN.replace("    def test_b(x):\n", "")])
def test_paths_and_test_names_are_no_code(printed: str) -> None:
    assert classify(printed, UnitRole.TOOL) is UnitKind.LOG


@pytest.mark.parametrize(
    "printed",
    [
        "Name: shop\nVersion: 4.2\nLicense: MIT\nLocation: /srv/app\nRequires: django",
        "total 12\n-rw-r--r-- 1 ada ada 311 Nov 24 19:00 a.py\n-rw-r--r-- 1 ada ada  14 Nov 24 19:00 b.py\n-rw-r--r-- "
        "1 ada ada 99 Nov 24 19:00 c.py",
        "id,name,total\n1,Ada,4\n2,Bo,12\n3,Cy,9",
        '{"order_id": "#W4711", "status": "pending", "items": [{"id": 3, "price": 12.5}]}',
        "Options:\n  -h, --help     show this help\n  -v, --version  show the version\n  -o FILE        write to FILE",
    ],
)
def test_what_commands_print_is_no_code(printed: str) -> None:
    assert classify(printed, UnitRole.TOOL) is UnitKind.LOG


def test_an_excerpt_of_code_is_code() -> None:
    lines = [
        "from a.b import c",
        "",
        "def f(x):",
        "    y = c(x)",
        "    if y is None:",
        "        y = [x]",
        "    return y",
    ]
    assert classify("\n".join(lines), UnitRole.TOOL) is UnitKind.CODE


AREAS = ["To Do List", "Calendar"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", (3, "")),
        ("[P1] hello", (1, "")),
        ("do this, please #p2", (2, "")),
        ("#p2 do this, please", (2, "")),
        ("do this #p2 please", (3, "")),  # only at the beginning or the end
        ("priority: 1", (1, "")),
        ("Priority: 1\nRestart it.", (1, "")),
        ("Priority = 2, I say", (2, "")),
        ("priority: 1 tickets are answered within the hour", (3, "")),  # speaks of a priority and sets none
        ("Answer the tickets of priority: 1", (1, "")),
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


def test_a_models_own_tags_count_for_nothing() -> None:
    assert priority_of("[P1] I did it. #p1", AREAS, 3, UnitRole.ASSISTANT) == (3, "")


def read_by_a_tool(text: str) -> Unit:
    call = ToolCall("call-1", "read_file", "{}")
    messages = (Message(Role.ASSISTANT, tool_calls=(call,)), Message(Role.TOOL, text, tool_call_id=call.id))
    return Unit("unit", UnitKind.MESSAGE, UnitRole.TOOL, messages)


def files_of(package: ModuleType) -> list[Path]:
    assert package.__file__
    results = sorted(path for path in Path(package.__file__).parent.rglob("*.py") if path.stat().st_size)
    return results[:: max(1, len(results) // 120)]


@pytest.mark.parametrize("package", [django, celery, remediation, dialogs], ids=lambda package: package.__name__)
def test_most_source_files_that_a_tool_read_are_code(package: ModuleType) -> None:
    kinds = Counter(kind_of(read_by_a_tool(path.read_text(errors="replace"))) for path in files_of(package))
    assert kinds[UnitKind.CODE] >= 0.75 * kinds.total()


def test_prose_that_a_tool_read_is_no_code() -> None:
    prose = (
        "The pool gives out connections, (and waits for them).\nIt is small; four of them.\nNobody minds that, I think."
    )
    assert classify(prose, UnitRole.TOOL) is UnitKind.LOG


def test_blank_areas_are_in_no_text() -> None:
    assert priority_of("hello", ["", "  "], 3) == (3, "")


@pytest.mark.parametrize(
    "text",
    [
        "priority" + " " * 500_000,
        "a " * 250_000,
        'File "' + "x" * 500_000,
        "\n" * 500_000,
        "- " * 250_000,
        "a:" * 250_000,
        "<a " * 200_000,
        "(" * 500_000,
        ("x " * 120 + "\n") * 2_000,
        ('"' * 240 + "\n") * 2_000,
    ],
)
def test_hostile_texts_are_judged_quickly(text: str) -> None:
    started = time.thread_time()
    classify(text, UnitRole.USER)
    priority_of(text, ["a a a b"], 3)
    assert time.thread_time() - started < 1
