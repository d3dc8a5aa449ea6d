from dataclasses import dataclass

import pytest
from django.contrib.auth.models import Group, User

from dialogs.actions import reminders, sharing
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Dialog, Question, Reminder
from remediation.models import RemovedUnit
from tests.dialogs.conftest import Script, _redis, script
from tests.dialogs.factories import RewriteFactory, UserFactory, make_dialog, send
from tests.dominds.llm.conftest import server

__all__ = ["_redis", "script", "server"]

ASKS = {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which one?"}}]}


@dataclass
class Camp:
    """A group with a dialog of its owner, which holds a word that stands nowhere else:
    said, archived and remembered."""

    word: str
    owner: User
    member: User
    dialog: Dialog
    question: Question
    unit: RemovedUnit
    reminder: Reminder

    @property
    def marks(self) -> tuple[str, ...]:
        """What shows in an answer that it knows of this camp's dialog."""
        return self.word, str(self.dialog.pk), str(self.question.pk)


def camp(script: Script, word: str) -> Camp:
    script(ASKS, {"text": "Done."})
    dialog, member = make_dialog(), UserFactory.create()
    group = Group.objects.create(name=f"Camp of {word}")
    group.user_set.set([dialog.owner, member])
    sharing.share(dialog.pk, group.name, dialog.owner)
    reminder = reminders.add(dialog.pk, f"Keep {word} in mind")
    send(dialog, f"Import the {word} ledger")
    unit = RemovedUnit.objects.create(
        dialog=dialog,
        run=RewriteFactory.create(dialog=dialog),
        unit_id="turn-1",
        kind="message",
        role="user",
        est_tokens=9,
        text=f"The {word} ledger was imported before.",
    )
    question = Question.objects.get(dialog=dialog)
    return Camp(word, dialog.owner, member, dialog, question, unit, reminder)


@pytest.fixture
def camps(script: Script) -> tuple[Camp, Camp]:
    return camp(script, "crimson"), camp(script, "azure")
