"""A worker that dies before any of its statements while a team works: each report arrives once, and nothing is asked
twice.
"""

from functools import partial
from uuid import UUID

import pytest

from dialogs.actions.messages import post_message
from dialogs.extras.teams import side_dialogs
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.extras.teams.conftest import asking
from tests.dialogs.factories import AgentFactory, make_dialog
from tests.dialogs.vanishing import expire
from tests.faults.effort import DEEP
from tests.faults.invariants import breaches
from tests.faults.processes import Forked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.extras]

EVERY = 12 if DEEP else 90  # statements between two deaths: each test begins at another one
STEPS = (
    {"match": "plan", "tool_calls": [asking("Find the hut"), asking("Find the path", "guide", wait=False)]},
    {"match": r"\AFind the hut", "tool_calls": [asking("Name the hut", "archive")]},
    {"match": r"\AName the hut", "text": "Heron"},
    {"match": r"\AFind the path", "text": "North"},
    {"match": r"\AHeron", "text": "The hut is the Heron."},
    {"match": "is the Heron", "text": "Thanks for the hut."},
    {"match": r"guide reports", "text": "Thanks for the path."},
)


def make_team(script: Script) -> Dialog:
    script(*STEPS)
    for name, colleagues in (("scout", ["archive"]), ("guide", []), ("archive", [])):
        if not AgentFactory._meta.model.objects.filter(pk=name).exists():
            AgentFactory.create(id=name, recall=False, extras={"colleagues": colleagues})
    root = make_dialog(recall=False, extras={"colleagues": ["scout", "guide"]})
    post_message(root.pk, "plan")
    return root


def team_of(root: UUID) -> list[Dialog]:
    sides = SideDialog.objects.filter(root=root).values_list("pk", flat=True)
    return list(Dialog.objects.filter(pk__in=[root, *sides]).order_by("created_at"))


def play(root: UUID) -> None:
    """Drive whoever of the team has work, until nobody has: as workers and the sweeper would, without their waits."""
    for _ in range(40):
        side_dialogs.sweep()
        working = [one for one in team_of(root) if one.state in ("queued", "generating")]
        if not working:
            return
        for dialog in working:
            if dialog.lease_owner:
                expire(dialog)
            drive(dialog.pk)
    raise AssertionError("it never comes to an end")


def faults_of(root: Dialog) -> list[str]:
    team = team_of(root.pk)
    result = breaches(team)
    says = [turn.text for turn in root.turns.filter(role=Turn.Role.ASSISTANT).exclude(text="").order_by("position")]
    if sorted(says) != ["Thanks for the hut.", "Thanks for the path."]:
        result.append(f"the root says {says}")
    asked = Turn.objects.filter(dialog__in=team, role=Turn.Role.USER).exclude(dialog=root)
    if sorted(turn.text.partition("\n")[0] for turn in asked) != ["Find the hut", "Find the path", "Name the hut"]:
        result.append(f"the team was asked {[turn.text for turn in asked]}")
    if open_sides := list(SideDialog.objects.filter(root=root, answered_at=None)):
        result.append(f"at work are still {open_sides}")
    calls = [turn.tool_call_id for turn in Turn.objects.filter(dialog__in=team, role=Turn.Role.TOOL)]
    if len(calls) != 3 or len(set(calls)) != 3:
        result.append(f"results of {calls}")
    return result


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(1, EVERY + 1) if DEEP else [50])
def test_each_report_arrives_once_wherever_a_worker_dies(first: int, script: Script) -> None:
    result: dict[int, list[str]] = {}
    point = first
    while True:
        root = make_team(script)
        died = Forked(partial(play, root.pk), at=point).wait().killed
        play(root.pk)
        if faults := faults_of(root):
            result[point] = faults
        if not died:
            break
        point += EVERY
    assert not result
    assert point > 100, "the story has hardly any statements: was it played at all?"
