"""Two workers on one dialog: one is paused at any statement and overtaken, and then goes on. It must change nothing."""

from functools import partial
from typing import Any

import pytest

from dialogs.actions import messages
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.faults.effort import DEEP
from tests.faults.invariants import breaches
from tests.faults.processes import Forked, pause
from tests.faults.scenarios import SCENARIOS, Scenario, check_end, drive_to_its_end
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = 1 if DEEP else 9
CHOSEN = [each for each in SCENARIOS if DEEP or each.name in ("answer", "tools", "refused clears", "accepted clear")]


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Any, settings: Any) -> None:
    settings.WORKSPACE_DIR = tmp_path


def everything_of(dialog: Dialog) -> list[Any]:
    """All rows that hang on the dialog, as values."""
    kept = [Dialog.objects.filter(pk=dialog.pk)]
    kept += [getattr(dialog, name).all() for name in ("turns", "generations", "events", "rounds", "reminders")]
    return [list(rows.order_by("pk").values()) for rows in [*kept, dialog.questions.all()]]


@pytest.mark.parametrize("scenario", CHOSEN, ids=lambda scenario: scenario.name)
def test_a_worker_that_was_overtaken_writes_nothing_more(scenario: Scenario, script: Script) -> None:
    failures: dict[int, Any] = {}
    point = 1 + SCENARIOS.index(scenario) % EVERY
    while True:
        dialog = scenario.prepare(script)
        slow = Forked(partial(drive, dialog.pk), at=point, then=pause, unlocked=True)
        if not slow.wait().paused:
            break
        drive_to_its_end(dialog)
        before = everything_of(dialog)
        slow.go_on()
        if everything_of(dialog) != before:
            failures[point] = "the overtaken worker wrote something"
        elif breach := check_end(scenario, dialog):
            failures[point] = breach
        point += EVERY
    assert not failures
    assert point > EVERY, "the story has no statement at which it could be overtaken"


def test_a_worker_whose_dialog_was_closed_meanwhile_writes_nothing_more(script: Script) -> None:
    point, failures = 1, []
    while True:
        dialog = SCENARIOS[0].prepare(script)
        slow = Forked(partial(drive, dialog.pk), at=point, then=pause, unlocked=True)
        if not slow.wait().paused:
            break
        messages.close(dialog.pk, dialog.owner)
        before = everything_of(dialog)
        slow.go_on()
        if everything_of(dialog) != before or breaches([Dialog.objects.get(pk=dialog.pk)]):
            failures.append(point)
        point += EVERY
    assert not failures


@pytest.mark.parametrize("workers", [2, 4])
def test_many_workers_in_processes_of_their_own_answer_once(script: Script, workers: int) -> None:
    scenario = next(each for each in SCENARIOS if each.name == "two messages")
    dialog = scenario.prepare(script)

    def drive_ten_times() -> None:
        for _ in range(10):
            drive(dialog.pk)

    others = [Forked(drive_ten_times, at=0) for _ in range(workers)]
    for other in others:
        other.wait()
    eventually(lambda: Dialog.objects.get(pk=dialog.pk).state == "idle")
    assert check_end(scenario, dialog) == []
    assert [row.outcome for row in dialog.generations.all()] == ["kept", "kept"]
