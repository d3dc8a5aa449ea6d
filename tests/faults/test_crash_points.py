"""A worker that dies before any of its statements: another one brings the story to the same end."""

from functools import partial
from typing import Any

import pytest

from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.faults.effort import DEEP
from tests.faults.processes import Forked
from tests.faults.scenarios import SCENARIOS, Scenario, check_end, drive_to_its_end

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = 1 if DEEP else 15  # every point, or each fifteenth with a shifting start


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
