"""A lead with a colleague, both played by one script."""

from typing import Any

import pytest
from django.db.models import Q
from django.db.models.functions import Now

from dialogs.extras.teams import sight
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script, script
from tests.dialogs.factories import AgentFactory, make_dialog

__all__ = ["script"]

TASK = "Find the hut"
REPORT = "The hut is called Heron."


def asking(task: str = TASK, agent: str = "scout", **more: Any) -> dict[str, Any]:
    """A call of ask_agent, as steps of a script make it."""
    return {"name": "ask_agent", "arguments": {"agent": agent, "task": task, **more}}


def steps(*calls: dict[str, Any], report: str = REPORT) -> list[dict[str, Any]]:
    """The lead makes these calls, the scout reports, and the lead ends with what it read."""
    return [
        {"match": "plan", "tool_calls": list(calls)},
        {"match": r"\A(The hut|Asked in|\[Runtime: the side dialog)", "text": "So that is it."},
        {"match": TASK, "text": report},
        {"text": "Go on."},
    ]


def results(dialog: Dialog) -> list[str]:
    return list(dialog.turns.filter(role=Turn.Role.TOOL).values_list("text", flat=True))


def side_of(dialog: Dialog) -> SideDialog:
    return SideDialog.objects.select_related("dialog").get(parent=dialog)


def play(dialog: Dialog) -> Dialog:
    """Drive the dialog and those below it until nobody has work."""
    for _ in range(20):
        ids = [dialog.pk, *(side.pk for side in sight.below(dialog.pk, ended=True))]
        working = Dialog.objects.filter(pk__in=ids, state="queued").values_list("pk", flat=True)
        working = working.filter(Q(wake_at=None) | Q(wake_at__lte=Now()))
        if not working:
            break
        for pk in list(working):
            drive(pk)
    dialog.refresh_from_db()
    return dialog


@pytest.fixture
def lead(script: Script) -> Dialog:
    """A dialog with an agent that may ask the scout."""
    AgentFactory.create(id="scout", name="Scout", recall=False)
    return make_dialog(id="lead", name="Lead", recall=False, extras={"colleagues": ["scout"]})
