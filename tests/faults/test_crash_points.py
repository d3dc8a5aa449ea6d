"""A worker that dies before any of its statements: another one brings the story to the same end."""

from functools import partial
from typing import Any

import pytest

from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.vanishing import expire
from tests.faults.effort import DEEP
from tests.faults.invariants import breaches
from tests.faults.processes import Forked
from tests.faults.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = 1 if DEEP else 15  # every point, or each fifteenth with a shifting start


def drive_to_its_end(dialog: Dialog) -> None:
    """As the sweeper would, without its waits."""
    for _ in range(12):
        Dialog.objects.filter(pk=dialog.pk, state__in=["queued", "generating"]).update(wake_at=None)
        if Dialog.objects.get(pk=dialog.pk).lease_owner:
            expire(dialog)
        drive(dialog.pk)
        if Dialog.objects.get(pk=dialog.pk).state not in ("queued", "generating"):
            return
    raise AssertionError("it never comes to an end")


def check_end(scenario: Scenario, dialog: Dialog) -> list[str]:
    result = breaches([Dialog.objects.get(pk=dialog.pk)])
    ends = dict(dialog.turns.filter(role="user").values_list("text", "status"))
    if ends != scenario.ends:
        result.append(f"messages ended as {ends}")
    state = Dialog.objects.get(pk=dialog.pk).state
    if state != scenario.state:
        result.append(f"the dialog is {state}")
    refusals = dialog.generations.filter(purpose="forced_clear", outcome="discarded").count()
    if refusals != scenario.refusals:
        result.append(f"{refusals} refused attempts")
    if dialog.reminders.count() != scenario.reminders:
        result.append(f"{dialog.reminders.count()} reminders")
    if crashed := dialog.generations.filter(outcome="crashed").count() > 1:
        result.append(f"{crashed} crashed attempts of one crash")
    return result


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Any, settings: Any) -> None:
    settings.WORKSPACE_DIR = tmp_path


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_story_ends_the_same_wherever_its_worker_dies(scenario: Scenario, script: Script) -> None:
    result: dict[int, list[str]] = {}
    point = 1 + SCENARIOS.index(scenario) % EVERY
    while True:
        dialog = scenario.prepare(script)
        died = Forked(partial(drive, dialog.pk), at=point).wait().killed
        drive_to_its_end(dialog)
        if breach := check_end(scenario, dialog):
            result[point] = breach
        if not died:
            break
        point += EVERY
    assert not result
    assert point > 5, "the story has hardly any statements: was it played at all?"
