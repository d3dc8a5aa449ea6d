"""What a client of ``/v1`` is told while its answer is made."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from dialogs.actions import messages
from dialogs.extras.v1 import conversations
from dialogs.extras.v1.ending import finish
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.relay import _read
from dialogs.extras.v1.runs import Run, abandon
from dialogs.models import ApiKey, Dialog, Generation, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.extras.v1.conversing import tool
from tests.dialogs.factories import AgentFactory, make_dialog


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
    assert texts <= news.ours.keys()


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


@pytest.mark.django_db(transaction=True)
def test_calls_reach_their_client_when_another_message_waited(script: Script, key: ApiKey) -> None:
    """The dialog goes on with that message before anybody asks how the first one ended."""
    script({"tool_calls": [{"name": "look", "arguments": {}}]}, {"text": "It is noon."})
    asked = (ClientMessage("user", "What is in the yard?"),)
    run = conversations.begin(key, ChatRequest(AgentFactory.create(proxy=True).pk, asked, tools=[tool("look")]))
    messages.post_message(run.dialog_id, "And what time is it?")
    drive(run.dialog_id)
    ended = finish(run, _read(run, 0).status, "")
    assert (ended.finish_reason, [call.name for call in ended.calls]) == ("tool_calls", ["look"])


def asked_by_program(text: str) -> tuple[Dialog, int]:
    """Return a program's own dialog with a message that waits, and the number of its turn."""
    dialog = make_dialog(proxy=True)
    Dialog.objects.filter(pk=dialog.pk).update(origin=Dialog.Origin.KEY)
    return dialog, messages.post_message(dialog.pk, text).seq


@pytest.mark.django_db(transaction=True)
def test_a_failure_keeps_its_words_when_another_message_waited(script: Script) -> None:
    script({"error": {"kind": "overloaded", "message": "Busy until noon."}}, {"text": "Here."})
    dialog, seq = asked_by_program("Hi")
    run = Run(dialog.pk, dialog.agent_id, dialog.owner_id, seq, queued=False, after_event=0, after_generation=0)
    messages.post_message(dialog.pk, "Are you there?")
    drive(dialog.pk)
    with pytest.raises(ApiError, match="Busy until noon") as failed:
        finish(run, _read(run, 0).status, "")
    assert failed.value.code == "provider_unavailable"


@pytest.mark.django_db(transaction=True)
def test_a_resent_request_is_told_the_same_failure(script: Script) -> None:
    """It came while the call was under way, which thus is older than the request."""
    script({"error": {"kind": "refused", "message": "Not this."}}, {"text": "Here."})
    dialog, seq = asked_by_program("Hi")
    drive(dialog.pk)
    began = Generation.objects.get(dialog=dialog).pk
    messages.post_message(dialog.pk, "Are you there?")
    run = Run(dialog.pk, dialog.agent_id, dialog.owner_id, seq, queued=False, after_event=0, after_generation=began)
    with pytest.raises(ApiError, match="Not this") as failed:
        finish(run, _read(run, 0).status, "")
    assert failed.value.code == "refused_by_provider"


@pytest.mark.django_db(transaction=True)
def test_a_client_that_goes_stops_its_own_message_alone(script: Script) -> None:
    script({"text": "One."})
    dialog = make_dialog()
    first, second = (messages.post_message(dialog.pk, text).seq for text in ("Hi", "And now?"))
    Turn.objects.filter(dialog=dialog, seq=first).update(status=Turn.Status.ANSWERED)
    Dialog.objects.filter(pk=dialog.pk).update(answering_seq=second)
    abandon(Run(dialog.pk, dialog.agent_id, dialog.owner_id, first, queued=False, after_event=0, after_generation=0))
    assert Dialog.objects.get(pk=dialog.pk).answering_seq == second
