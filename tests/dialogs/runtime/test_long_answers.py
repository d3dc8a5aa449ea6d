"""Answers and questions that are long for their window, with LM Studio's defaults of 4,096 and 8,192 tokens."""

import pytest

from dialogs.models import Generation, Turn
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("window", [4_096, 8_192])
def test_a_cut_answer_stays_and_goes_on(script: Script, window: int) -> None:
    script(
        {"match": "cut off to compact", "text": "and so it ends."},
        {"match": "Tell", "text": " ".join(f"word{number}" for number in range(window))},
        {"text": "Fine."},
        context_length=window,
        kind="lmstudio",
    )
    dialog = send(make_dialog(), "Tell me a story")
    answers = list(dialog.turns.filter(role=Turn.Role.ASSISTANT).order_by("position"))
    assert [turn.status for turn in answers] == ["interrupted", "complete"]
    assert answers[1].text == "and so it ends."
    dialog.refresh_from_db()
    assert (dialog.state, dialog.failure) == ("idle", "")


def test_a_question_that_cannot_fit_is_refused_before_it_is_sent(script: Script) -> None:
    script({"text": "Fine."}, context_length=4_096, kind="lmstudio")
    dialog = send(make_dialog(), "".join(f"{number * 7919 % 99991} " for number in range(6_000)))
    assert dialog.state == "failed"
    assert "too long to be sent" in dialog.failure
    assert "shorter answer" not in dialog.failure
    assert not Generation.objects.filter(dialog=dialog, purpose="reply").exists()


def test_a_rewrite_that_saved_little_shows_what_it_saved(script: Script) -> None:
    from dialogs.pages.context_panel import RunLine
    from remediation.models import RemediationRun

    line = RunLine(RemediationRun(policy="breaking", est_before=3_121, est_after=3_088))
    assert line.sizes == "est. 3,121 → 3,088 tokens"
