"""The demo team of docs/teams.md, in figures."""

from typing import Any

import pytest

from dialogs.actions import messages, questions
from dialogs.agents import team_file
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Generation
from tests.dialogs.extras.teams.conftest import play, results
from tests.dialogs.factories import UserFactory
from tests.harness.stack import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


def largest_prompt(dialog: Dialog) -> int:
    return max(filter(None, Generation.objects.filter(dialog=dialog).values_list("prompt_tokens", flat=True)))


def test_the_reader_is_cleared_while_the_lead_goes_on(settings: Any) -> None:
    settings.MINDS_DIR = ROOT / "examples" / "team"
    assert team_file.current_team().problems == ()
    team_file.synchronise()
    root = messages.create_dialog(UserFactory.create(), "lead")
    messages.post_message(root.pk, "Plan the trip")
    play(root)

    log, train = (SideDialog.objects.select_related("dialog").get(root=root, name=name) for name in ("log", "train"))
    assert (root.state, train.dialog.state) == ("queued", "waiting")
    assert log.dialog.round_number == 2 and log.answered_at is not None
    question = train.dialog.questions.get(state="open")
    questions.answer(question.pk, root.owner, "07:38")
    play(root)
    assert root.state == "idle"
    assert [text.partition(" ")[0] for text in results(root)] == ["Written.", "Asked", "Two"]
    said = " ".join(root.turns.filter(role="assistant").values_list("text", flat=True))
    assert "The seats are booked as you decided" in said and "Three Springs had the best soup" in said
    read = sum(filter(None, Generation.objects.filter(dialog=log.dialog).values_list("completion_tokens", flat=True)))
    print(f"lead {largest_prompt(root):,}, reader {largest_prompt(log.dialog):,}, read {read:,}")
    assert largest_prompt(log.dialog) > 6_500 > 0
