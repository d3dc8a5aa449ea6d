"""The breaking bar: which phases share a transaction, and whose priority its pill shows."""

from dataclasses import replace

import pytest

from dialogs.runtime.rewrite_progress import Progress, badge, message, progress
from remediation.context import Unit, UnitKind, Units
from remediation.synthetic_dialogs import AREAS
from tests.remediation.building import model, system, tool, toolbox, unit, user


def in_area(text: str, priority: int, area: str) -> Unit:
    return replace(user(text, priority=priority), area=area)


LIST, CALENDAR = AREAS
HANDOVER = unit("Resuming from overflow: all is well.", kind=UnitKind.SUMMARY, priority=1)


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        ((system(), user("plain"), model("plain")), (None, "")),
        ((user("[P1] keep this", priority=1), user("plain")), (1, "")),
        ((in_area("the list", 1, LIST), user("[P1]", priority=1)), (1, LIST)),
        ((in_area("#p2 the calendar", 2, CALENDAR), user("[P1]", priority=1)), (1, "")),
        ((in_area("#p2 the calendar", 2, CALENDAR), user("plain")), (2, CALENDAR)),
        ((HANDOVER, user("plain")), (None, "")),
        ((user("as its agent", priority=2), model("as its agent", priority=2)), (None, "")),
        ((user("#p2 soon", priority=2), model("as its agent", priority=2)), (2, "")),
        ((user("[P3] some day", priority=3),), (None, "")),
        ((tool("[P1] says a page", priority=1),), (None, "")),
        ((in_area("#p2 the calendar", 2, CALENDAR), user("as its agent", priority=2)), (2, CALENDAR)),
    ],
)
def test_the_pill_names_the_highest_priority_that_somebody_gave(units: Units, shown: tuple[int | None, str]) -> None:
    assert badge(units) == shown


def test_the_aim_of_a_summary_is_the_configured_one() -> None:
    assert message("summarize_old", 2_100, 5_000, 300) == "Summarizing old context… (est. 2.1k → 300 tokens)"
    assert message("summarize_old", 900, 5_000, 1_200) == "Summarizing old context… (est. 900 → 1,200 tokens)"


def test_recovery_shows_no_share_and_none_is_above_all() -> None:
    assert progress("recovery", 4_000, 5_000) == -1
    assert (progress("success", 3_420, 5_000), progress("hybrid", 9_000, 5_000)) == (68, 100)


def test_phases_share_a_transaction_unless_one_of_them_lasts() -> None:
    shown: list[list[str]] = []
    now = 0.0
    phases = Progress(lambda waiting: shown.append([phase for phase, _, _ in waiting]), lambda: now)
    box = phases.with_phases_shown(toolbox(), compares_long=False)
    phases.add("detection", 1, 1)
    phases.add("summarize_old", 1, 1)
    now = 0.06  # the second one goes on
    box.count(())
    box.relevance(["a"], "b")
    phases.add("prioritize_recent", 1, 1)
    phases.write()
    assert shown == [["detection", "summarize_old"], ["prioritize_recent"]]


def test_a_phase_is_shown_before_texts_are_compared_by_a_model() -> None:
    shown: list[int] = []
    phases = Progress(lambda waiting: shown.append(len(waiting)))
    phases.add("detection", 1, 1)
    phases.with_phases_shown(toolbox(), compares_long=True).relevance(["a"], "b")
    assert shown == [1]
