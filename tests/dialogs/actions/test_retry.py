"""Failed messages: errors that pass and errors that do not, and the retry by a person."""

import time
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from dialogs.actions import messages, rewrite_requests
from dialogs.errors import Conflict
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from dialogs.runtime.sweeping import sweep
from tests.dialogs.actions.driving import answers, refreshed, send, user_turns
from tests.dialogs.conftest import Script

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("kind", ["auth", "refused"])
def test_a_lasting_error_fails_the_message_with_its_reason(script: Script, dialog: Dialog, kind: str) -> None:
    script({"error": {"kind": kind, "message": "No, says the model."}})
    results = send(dialog, "Hi")
    assert (results.state, results.failure) == ("failed", "No, says the model.")
    assert user_turns(dialog) == [("Hi", "failed")]
    assert dialog.generations.count() == 1


def test_an_error_that_passes_is_tried_again_in_the_same_message(script: Script, dialog: Dialog) -> None:
    script({"text": "SENTINEL", "error": {"kind": "network", "message": "Gone."}}, {"text": "back"})
    results = send(dialog, "Hi")
    assert (results.state, answers(dialog)) == ("idle", [("back", "complete")])
    assert list(dialog.generations.order_by("id").values_list("outcome", "attempt")) == [("failed", 1), ("kept", 2)]


def test_a_long_wait_for_the_provider_holds_no_worker(script: Script, dialog: Dialog) -> None:
    script(
        {"text": "lost", "error": {"kind": "rate_limit", "message": "Slow down.", "retry_after": 40}}, {"text": "ok"}
    )
    started = time.monotonic()
    waiting = send(dialog, "Hi")
    assert time.monotonic() - started < 10
    assert (waiting.state, waiting.lease_owner, waiting.crashes) == ("queued", "", 0)
    drive(dialog.pk)
    assert dialog.generations.count() == 1, "nobody drives it before its time"
    assert sweep() == 0
    Dialog.objects.filter(pk=dialog.pk).update(wake_at=Now(), active_at=Now() - timedelta(seconds=2))
    assert sweep() == 1
    drive(dialog.pk)
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "answered")], [("ok", "complete")])


def test_a_failed_message_is_answered_by_a_retry(script: Script, dialog: Dialog) -> None:
    script({"error": {"kind": "refused", "message": "No."}})
    send(dialog, "Hi")
    assert messages.retry(dialog.pk) == "queued"
    script({"text": "yes"})
    drive(dialog.pk)
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "answered")], [("yes", "complete")])
    assert refreshed(dialog).failure == ""


def test_retry_is_refused_when_there_is_nothing_to_retry(script: Script, dialog: Dialog) -> None:
    with pytest.raises(Conflict) as refused:
        messages.retry(dialog.pk)
    assert refused.value.code == "nothing_to_retry"
    send(dialog, "Hi")
    with pytest.raises(Conflict):
        messages.retry(dialog.pk)
    messages.post_message(dialog.pk, "Ho")
    with pytest.raises(Conflict) as refused:
        messages.retry(dialog.pk)
    assert refused.value.code == "dialog_busy"


def test_a_failed_message_does_not_hold_up_the_next(script: Script, dialog: Dialog) -> None:
    script({"match": "Hi$", "error": {"kind": "refused", "message": "No."}}, {"text": "yes"})
    send(dialog, "Hi", "Ho")
    assert user_turns(dialog) == [("Hi", "failed"), ("Ho", "answered")]


def test_a_message_before_a_clear_is_retried_in_its_round(script: Script, dialog: Dialog) -> None:
    script({"error": {"kind": "refused", "message": "No."}}, {"match": "Go on", "text": "yes"})
    send(dialog, "Hi")
    rewrite_requests.clear(dialog.pk, "Go on", dialog.owner)
    drive(dialog.pk)
    assert refreshed(dialog).round_number == 2
    messages.retry(dialog.pk)
    drive(dialog.pk)
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "answered")], [("yes", "complete")])
