"""A rewrite that did not pay is an outcome with its reward: no error, no task, and no message fails that fits."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dialogs.actions import messages, questions, rewrite_requests
from dialogs.errors import Invalid
from dialogs.models import Dialog, Turn
from dialogs.runtime.driver import drive
from remediation.models import CleanupTask, ContextEvent, RemediationRun
from tests.dialogs.browsing import browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import make_dialog, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)

OK: dict[str, Any] = {"text": "ok", "usage": "estimate"}


def rewrite(dialog: Dialog, verb: str) -> RemediationRun:
    rewrite_requests.request(dialog.pk, verb, dialog.owner)
    drive(dialog.pk)
    dialog.refresh_from_db()
    return RemediationRun.attempts.filter(dialog=dialog).latest("id")


def test_a_rejected_rewrite_is_an_outcome_and_no_error(script: Script) -> None:
    script(OK)
    dialog = send(make_dialog(context_policy="breaking", context_limit=5_000), "one")
    run = rewrite(dialog, "prune")
    assert run.rejected and run.est_after == run.est_before
    assert run.reward is not None and run.reward_record is not None
    assert run.reward_record["outcome"]["tokens_reduced"] == 0
    assert not RemediationRun.objects.filter(dialog=dialog).exists(), "it does not stand"
    assert not ContextEvent.objects.filter(dialog=dialog).exists()
    assert not CleanupTask.objects.exists()
    assert (dialog.state, dialog.failure) == ("idle", "")


def test_a_compaction_that_changed_nothing_says_so_in_its_second_notice(script: Script) -> None:
    script(OK, kind="lmstudio", context_length=8_000)
    dialog = send(make_dialog(), "one")
    assert rewrite(dialog, "compact").rejected
    notices = dialog.turns.filter(role=Turn.Role.NOTICE).order_by("seq").values_list("text", flat=True)
    assert list(notices) == ["Compacting conversation history...", "Nothing was compacted, continuing..."]


def test_no_message_that_fits_fails_for_want_of_a_rewrite(script: Script, tmp_path: Path) -> None:
    """With ``recovery_mode: error`` messages of est. 4,203 and 4,839 of 5,000 failed."""
    script(OK)
    config = {"context_config": {"recovery_mode": "error"}}
    (tmp_path / "minds" / "context.yaml").write_text(yaml.safe_dump(config))
    dialog = make_dialog(context_policy="breaking", context_limit=5_000)
    send(dialog, "wool " * 3_300)  # with what stands beside it more than 4,000, less than 5,000
    send(dialog, "and now?")
    assert [turn.status for turn in dialog.turns.filter(role=Turn.Role.USER)] == ["answered", "answered"]
    assert not ContextEvent.objects.filter(dialog=dialog, code="BREAKER_FAILED").exists()


def test_only_what_is_over_the_threshold_is_a_warning(script: Script) -> None:
    script({**OK, "usage": {"prompt_tokens": 7_300, "completion_tokens": 2}}, context_length=8_000)
    dialog = send(make_dialog(context_policy="breaking", context_limit=20_000), "The cart of wool came late. " * 600)
    Dialog.objects.filter(pk=dialog.pk).update(calibration_fit=None)
    messages.post_message(dialog.pk, "Go on.")
    drive(dialog.pk)
    run = RemediationRun.attempts.filter(dialog=dialog).earliest("id")
    assert run.reason == "a critical report" and run.est_before < 6_400
    assert not ContextEvent.objects.filter(dialog=dialog, code="CONTEXT_WARNING", est_tokens__lte=6_400).exists()


def test_the_same_model_is_no_way_out_of_a_critical_context(script: Script) -> None:
    dialog, question = suspended_dialog(script)
    with pytest.raises(Invalid, match="answered by model already"):
        questions.resolve(question.pk, make_operator(), "switch_model", provider="test", model="model")
    dialog.refresh_from_db()
    assert dialog.state == "suspended"


def test_a_suspended_dialog_offers_no_rewrite_and_takes_none(script: Script) -> None:
    dialog, _ = suspended_dialog(script)
    client = browser_of(dialog.owner)
    assert 'data-may-rewrite="no"' in client.get(f"/d/{dialog.pk}/").content.decode()
    for slug in ("fresh-start", "prune", "milestone", "clear"):
        client.post(f"/d/{dialog.pk}/context/{slug}/", {"reminder_content": "Go on."})
    dialog.refresh_from_db()
    assert (dialog.state, dialog.requested_rewrite, dialog.round_number) == ("suspended", "", 1)
    assert event_data(dialog, "remediation") == []
