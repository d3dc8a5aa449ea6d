"""A rewrite that takes too long, and how long its transaction is open."""

from dataclasses import replace
from typing import Any

import pytest

from dialogs.actions import messages
from dialogs.models import Dialog, Turn
from dialogs.runtime import rewrite, rewrite_job
from dialogs.runtime.materials import materials_of
from dialogs.store.lease import claim
from dominds import budgets
from remediation.decisions import Rewrite
from remediation.models import RemediationRun
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send
from tests.harness import transactions

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_rate(settings: Any) -> None:
    settings.MESSAGES_PER_MINUTE = 0


def long_dialog(turns: int, chars: int = 400) -> Dialog:
    """A dialog with so many turns before the message that waits for its answer."""
    dialog = send(make_dialog(context_policy="retention"), "Begin.")
    first = dialog.last_turn_seq
    Turn.objects.bulk_create(
        Turn(
            dialog=dialog,
            seq=first + at,
            position=first + at,
            round_number=1,
            text=f"Part {at}. " + "word " * (chars // 5),
            role="user" if at % 2 else "assistant",
            status="answered" if at % 2 else "complete",
        )
        for at in range(1, turns + 1)
    )
    dialog.last_turn_seq = dialog.last_position = first + turns
    dialog.save()
    messages.post_message(dialog.pk, "And now?")
    return dialog


def job_of(dialog: Dialog) -> rewrite_job.Job:
    dialog = Dialog.objects.whole().get(pk=dialog.pk)
    return rewrite_job.job_for(dialog, materials_of(dialog), Rewrite("retention", "test", 2_000))


def rewrite_within(dialog: Dialog, seconds: float) -> RemediationRun:
    with claim(dialog.pk) as lease:
        assert lease is not None
        rewrite.perform(lease, job_of(dialog), seconds)
    return RemediationRun.objects.get(dialog=dialog)


def test_a_rewrite_out_of_time_keeps_the_newest_and_says_so(script: Script) -> None:
    script({"text": "Noted."}, context_length=8_000)
    dialog = long_dialog(60)
    run = rewrite_within(dialog, seconds=0)
    assert [step["strategy"] for step in run.steps] == ["fallback"]
    assert 0 < run.est_after < run.est_before
    notice = dialog.turns.get(role=Turn.Role.NOTICE).text
    assert notice.startswith("The rewrite took more than 0 s. DOMINDS_REWRITE_SECONDS sets this limit.")


def test_in_time_the_policy_rewrites(script: Script) -> None:
    script({"text": "Noted."}, context_length=8_000)
    dialog = long_dialog(60)
    assert "fallback" not in {step["strategy"] for step in rewrite_within(dialog, seconds=600).steps}
    assert not dialog.turns.filter(role=Turn.Role.NOTICE).exists()


def test_a_rewrite_of_thousands_of_units_computes_outside_its_transaction(script: Script) -> None:
    script({"text": "Noted."}, context_length=200_000)
    dialog = long_dialog(2_000, chars=200)
    with transactions.watched() as ended:
        run = rewrite_within(dialog, seconds=600)
    storing = [one for one in ended if "rewrite_rows.py" in one.where]
    assert len(storing) == 1
    per_row = storing[0].computed / max(1, len(run.removed))
    assert per_row < 0.0003, "what is left are the rows themselves"


def test_a_rewrite_that_would_archive_too_much_is_not_applied(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script({"text": "Noted."}, context_length=8_000)
    dialog = long_dialog(60)
    monkeypatch.setattr(budgets, "ARCHIVED_UNITS", replace(budgets.ARCHIVED_UNITS, most=10))
    with claim(dialog.pk) as lease:
        assert lease is not None
        rewrite.perform(lease, job_of(dialog))
    assert not RemediationRun.objects.exists()
    text = RemediationRun.attempts.get(dialog=dialog).rejected
    assert "would archive more than 10 messages at once. DOMINDS_ARCHIVED_MESSAGES sets this limit." in text
