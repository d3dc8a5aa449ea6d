"""What a client of ``/v1`` is told while its answer is made."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from dialogs.actions import messages
from dialogs.extras.v1.ending import finish
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.relay import _read
from dialogs.extras.v1.runs import Run
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", ["dialogs_event", "dialogs_generation"])
def test_an_answer_that_is_made_while_we_look_is_nobody_elses(script: Script, moment: str) -> None:
    """Its text would be left out, and the client's next request, which lacks it, would begin another dialog."""
    dialog = make_dialog()
    seq = messages.post_message(dialog.pk, "Hi").seq
    run = Run(dialog.pk, dialog.agent_id, dialog.owner_id, seq, queued=False, after_event=0, after_generation=0)
    answered: list[bool] = []

    def answer_after(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        outcome = execute(sql, *rest)
        if f'FROM "{moment}"' in sql and not answered:
            answered.append(True)
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(answer).result()
        return outcome

    def answer() -> None:
        drive(dialog.pk)
        connection.close()

    with connection.execute_wrapper(answer_after):
        news = _read(run, 0)
    assert answered
    texts = {event["data"]["generation"] for event in news.events if event["data"].get("role") == "assistant"}
    assert texts <= news.ours


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("origin", [Dialog.Origin.KEY, Dialog.Origin.PERSON])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"kind": "auth"}, (401, "provider_authentication", None)),
        ({"kind": "forbidden"}, (403, "provider_permission", None)),
        ({"kind": "refused"}, (400, "refused_by_provider", None)),
        ({"kind": "refused_for_good"}, (400, "refused_by_provider", None)),
        ({"kind": "context_overflow"}, (400, "context_length_exceeded", None)),
        ({"kind": "rate_limit", "retry_after": 90}, (503, "provider_unavailable", 90)),
        ({"kind": "overloaded", "retry_after": 1_000}, (503, "provider_unavailable", 1_000)),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_what_the_provider_said_is_passed_on_as_what_it_is(
    script: Script, error: dict[str, Any], told: tuple[int, str, int | None], origin: str
) -> None:
    script({"error": {"message": "No.", **error}})
    dialog = make_dialog(proxy=True)
    Dialog.objects.filter(pk=dialog.pk).update(origin=origin)
    seq = messages.post_message(dialog.pk, "Hi").seq
    run = Run(dialog.pk, dialog.agent_id, dialog.owner_id, seq, queued=False, after_event=0, after_generation=0)
    drive(dialog.pk)
    with pytest.raises(ApiError) as failed:
        finish(run, _read(run, 0).status, "")
    status, code, wait = told
    assert (failed.value.status, failed.value.code) == (status, code)
    assert failed.value.retry_after_seconds == wait or (wait and wait - 5 <= (failed.value.retry_after_seconds or 0))
    if origin == Dialog.Origin.KEY:
        script({"text": "Yes."})
        messages.post_message(dialog.pk, "And now?")
        drive(dialog.pk)
        dialog.refresh_from_db()
        assert (dialog.state, dialog.wake_at) == ("idle", None), "the next message waits for nothing"
