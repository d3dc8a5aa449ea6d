"""What no policy may do to a view, case by case."""

from dataclasses import replace

import pytest

from remediation.context import Units
from remediation.policies.laws import broken_law
from tests.remediation.building import model, numbered, prose, system, tool, user

BEFORE = numbered(
    system(), user("Build a boat", pinned=True), model(prose("oak", 40)), tool(prose("saw", 40)), user("What now?")
)
PROMPT, TASK, ANSWER, CALL, NEWEST = BEFORE
MUST_STAY = "took away, changed or moved"


@pytest.mark.parametrize(
    "after", [(PROMPT, TASK, NEWEST), (PROMPT, TASK, CALL, NEWEST), (PROMPT, TASK, user("short"), NEWEST)]
)
def test_a_smaller_view_with_all_that_must_stay_is_lawful(after: Units) -> None:
    assert broken_law(BEFORE, after) == ""


@pytest.mark.parametrize(
    ("after", "law"),
    [
        (BEFORE, "made nothing smaller"),
        ((TASK, CALL, NEWEST), MUST_STAY),
        ((PROMPT, CALL, NEWEST), MUST_STAY),
        ((PROMPT, TASK, CALL), MUST_STAY),
        ((TASK, PROMPT, NEWEST), MUST_STAY),
        ((PROMPT, TASK, replace(NEWEST, messages=user("What?").messages)), MUST_STAY),
        ((PROMPT, TASK, TASK, NEWEST), "one id to two"),
        ((PROMPT, TASK, replace(CALL, messages=CALL.messages[:1]), NEWEST), "parted a tool call from its result"),
        ((PROMPT, TASK, replace(CALL, messages=CALL.messages[1:]), NEWEST), "parted a tool call from its result"),
    ],
)
def test_what_breaks_a_law_is_named(after: Units, law: str) -> None:
    assert law in broken_law(BEFORE, after)
