"""Turns as units of context."""

from typing import Any

import pytest

from dialogs.context.units import NO_RESULT, group
from dialogs.models import Turn

pytestmark = pytest.mark.unit


def calling(*ids: str) -> Turn:
    return Turn(role="assistant", tool_calls=[{"id": one, "name": "look", "arguments": "{}"} for one in ids])


def result(call_id: str, text: str) -> Turn:
    return Turn(role="tool", tool_call_id=call_id, text=text)


@pytest.mark.parametrize(
    ("turns", "results"),
    [
        ([calling("a"), result("a", "dark"), calling("a"), result("a", "light")], [["dark"], ["light"]]),
        ([calling("a", "a"), result("a", "dark"), result("a", "light")], [["dark", "light"]]),
        ([calling("a"), calling("a"), result("a", "light")], [[NO_RESULT], ["light"]]),
        ([calling("a", "b"), result("b", "light"), result("a", "dark")], [["dark", "light"]]),
        ([calling("a"), result("a", "lost"), result("a", "dark")], [["dark"]]),
        ([result("a", "of nothing"), calling("a")], [[NO_RESULT]]),
    ],
)
def test_each_call_has_its_own_result_though_ids_are_alike(turns: list[Turn], results: list[list[Any]]) -> None:
    for seq, turn in enumerate(turns, 1):
        turn.seq = seq
    assert [[message.text for message in unit.messages[1:]] for unit in group(turns)] == results
