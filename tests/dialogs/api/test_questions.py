"""Questions by ``/api``: answers, cancellation, and the exits of a suspension."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Dialog, Question
from dialogs.runtime.driver import drive
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asked(caller: Caller, dialog: Dialog, script: Script) -> str:
    """The id of an open ordinary question."""
    script(
        {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which currency?"}}]},
        {"text": "Thank you."},
    )
    send(dialog, "Hi")
    return str(Question.objects.get(dialog=dialog).pk)


@pytest.fixture
def suspended(caller: Caller, dialog: Dialog, script: Script) -> str:
    """The id of an open critical question."""
    script({"text": "no", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    send(dialog, "fill", "more")
    return str(Question.objects.get(dialog=dialog).pk)


def test_a_question_is_answered_once(caller: Caller, dialog: Dialog, asked: str) -> None:
    assert caller.get(f"/dialogs/{dialog.pk}")["question"] == {
        "id": asked,
        "kind": "question",
        "text": "Which currency?",
    }
    (result,) = caller.get("/questions?state=open")
    assert set(
        """
        id dialog kind text state attempts draft created_at resolved_by resolved_at
        """.split()
    ) <= set(result)
    assert caller.get(f"/questions/{asked}") == result
    status, answered = caller("POST", f"/questions/{asked}/answer", {"text": "Euro"})
    assert (status, answered["state"], answered["resolved_by"]) == (200, "answered", caller.owner.username)
    again = caller("POST", f"/questions/{asked}/answer", {"text": "Dollar"})
    assert code_of(again) == (409, "already_resolved")
    assert caller.owner.username in again[1]["error"]["message"]
    assert caller.get("/questions?state=open") == []
    drive(dialog.pk)
    assert caller.get(f"/dialogs/{dialog.pk}/turns")[-1]["text"] == "Thank you."


def test_a_question_is_cancelled(caller: Caller, asked: str) -> None:
    assert caller("POST", f"/questions/{asked}/cancel")[1]["state"] == "cancelled"
    assert code_of(caller("POST", f"/questions/{asked}/resolve", {"action": "retry"})) == (409, "already_resolved")


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": "a\0b"}, {"text": 7}])
def test_an_answer_needs_a_text(caller: Caller, asked: str, body: dict[str, Any]) -> None:
    assert code_of(caller("POST", f"/questions/{asked}/answer", body)) == (400, "invalid")


def test_a_message_queues_while_a_question_waits(caller: Caller, dialog: Dialog, asked: str) -> None:
    assert caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "By the way"}) == (
        202,
        {"seq": 3, "state": "waiting"},
    )


def test_a_suspended_dialog_takes_no_message_and_shows_numbers_not_texts(
    caller: Caller, dialog: Dialog, suspended: str
) -> None:
    assert code_of(caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})) == (409, "dialog_suspended")
    result = caller.get(f"/questions/{suspended}")
    assert result["kind"] == "context_health_critical"
    usage = {"prompt_tokens": 120_000, "completion_tokens": 1, "total_tokens": 120_001}
    assert result["attempts"] == [{"outcome": "discarded", "usage": usage}] * 3
    assert result["draft"]
    assert code_of(caller("POST", f"/questions/{suspended}/answer", {"text": "Go on"})) == (409, "not_answerable")
    assert code_of(caller("POST", f"/questions/{suspended}/resolve", {"action": "close"})) == (
        409,
        "permission_required",
    )


@pytest.mark.parametrize(
    ("exit_", "state"),
    [
        ({"action": "clear", "reminder_content": "Go on with step 3."}, "queued"),
        ({"action": "accept_draft"}, "queued"),
        ({"action": "retry"}, "queued"),
        ({"action": "switch_model", "provider": "test", "model": "model"}, "queued"),
        ({"action": "close"}, "closed"),
    ],
)
def test_each_exit_of_a_suspension(caller: Caller, suspended: str, exit_: dict[str, str], state: str) -> None:
    if exit_["action"] == "switch_model":  # a move to the same model is refused
        Dialog.objects.filter(questions=UUID(suspended)).update(provider="test", model="former")
    operator = Caller(make_operator())
    status, result = operator("POST", f"/questions/{suspended}/resolve", exit_)
    assert (status, result["state"], result["action"]) == (200, "resolved", exit_["action"])
    assert result["resolved_by"] == operator.owner.username
    assert caller.get(f"/dialogs/{result['dialog']}")["state"] == state


@pytest.mark.parametrize(
    "exit_",
    [
        {},
        {"action": "jump"},
        {"action": "clear"},
        {"action": "clear", "reminder_content": " "},
        {"action": "switch_model"},
        {"action": "switch_model", "provider": "test", "model": "nowhere"},
    ],
)
def test_an_exit_that_is_none_changes_nothing(caller: Caller, suspended: str, exit_: dict[str, str]) -> None:
    operator = Caller(make_operator())
    assert code_of(operator("POST", f"/questions/{suspended}/resolve", exit_)) == (400, "invalid")
    assert caller.get(f"/questions/{suspended}")["state"] == "open"


def test_a_state_that_is_none_is_invalid(caller: Caller) -> None:
    assert code_of(caller("GET", "/questions?state=maybe")) == (400, "invalid")


def test_the_owner_may_resolve_once_an_operator_allows_it(
    caller: Caller, suspended: str, django_user_model: Callable[..., Any]
) -> None:
    from django.contrib.auth.models import Permission

    caller.owner.user_permissions.add(Permission.objects.get(codename="resolve_question"))
    assert caller("POST", f"/questions/{suspended}/resolve", {"action": "close"})[0] == 200
