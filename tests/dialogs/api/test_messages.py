"""Messages by ``/api``: what is accepted, what is refused, and stop, retry and close."""

from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_is_accepted_and_answered(caller: Caller, dialog: Dialog, script: Script) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    status, accepted = caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})
    assert (status, accepted) == (202, {"seq": 1, "state": "queued"})
    drive(dialog.pk)
    first, second = caller.get(f"/dialogs/{dialog.pk}/turns")
    assert (first["role"], first["text"], first["status"], first["usage"]) == ("user", "Hi", "answered", None)
    assert set(
        """
        seq round role text tool_calls tool_call_id status usage level created_at
        """.split()
    ) <= set(second)
    assert second["usage"] == {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
    assert (second["text"], second["level"], second["tool_calls"]) == ("Hello.", "healthy", [])
    (generation,) = caller.get(f"/dialogs/{dialog.pk}/generations")
    assert set(
        """
        id round purpose outcome attempt usage level guided turn_seq started_at finished_at
        """.split()
    ) <= set(generation)
    assert (generation["purpose"], generation["outcome"], generation["turn_seq"]) == ("reply", "kept", 2)
    health = caller.get(f"/dialogs/{dialog.pk}")["health"]
    assert (health["prompt_tokens"], health["hard_util"]) == (50, 50 / 128_000)


def test_unreported_usage_is_null_and_never_zero(caller: Caller, dialog: Dialog, script: Script) -> None:
    script({"text": "Hello.", "usage": "none"})
    caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})
    drive(dialog.pk)
    assert caller.get(f"/dialogs/{dialog.pk}/turns")[1]["usage"] is None
    assert caller.get(f"/dialogs/{dialog.pk}/generations")[0]["usage"] is None
    health = caller.get(f"/dialogs/{dialog.pk}")["health"]
    assert (health["prompt_tokens"], health["total_tokens"], health["hard_util"]) == (None, None, None)
    assert (health["level"], health["reason"]) == ("unknown", "usage_unavailable")


def test_a_repeated_client_id_repeats_the_answer_of_the_same_text(caller: Caller, dialog: Dialog) -> None:
    send = {"text": "Hi", "client_message_id": "one"}
    first = caller("POST", f"/dialogs/{dialog.pk}/messages", send)
    assert caller("POST", f"/dialogs/{dialog.pk}/messages", send) == first
    assert dialog.turns.count() == 1
    other = caller("POST", f"/dialogs/{dialog.pk}/messages", send | {"text": "Ho"})
    assert code_of(other) == (409, "client_message_id_reused")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": None},
        {"text": ["Hi"]},
        {"text": ""},
        {"text": " \n"},
        {"text": "a\0b"},
        [],
        "Hi",
        {"text": "Hi", "client_message_id": "x" * 121},
    ],
)
def test_what_is_no_message_is_invalid_and_leaves_no_row(caller: Caller, dialog: Dialog, body: Any) -> None:
    assert code_of(caller("POST", f"/dialogs/{dialog.pk}/messages", body)) == (400, "invalid")
    assert dialog.turns.count() == 0


def test_the_error_names_the_field(caller: Caller, dialog: Dialog) -> None:
    _, body = caller("POST", f"/dialogs/{dialog.pk}/messages", {})
    assert body["error"]["message"].startswith("text: ")


@pytest.mark.parametrize("raw", [b"", b"{", b'{"text": "\\ud800"}', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_is_invalid(caller: Caller, dialog: Dialog, raw: bytes) -> None:
    answer = caller._client.post(f"/api/dialogs/{dialog.pk}/messages", raw, "application/json")
    assert code_of((answer.status_code, answer.json())) == (400, "invalid")


@pytest.mark.parametrize(("letter", "bytes_each"), [("a", 1), ("é", 2), ("🦊", 4)])
def test_a_message_may_have_a_million_bytes_and_not_one_more(
    caller: Caller, dialog: Dialog, letter: str, bytes_each: int
) -> None:
    largest = letter * (1_000_000 // bytes_each)
    assert caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": largest})[0] == 202
    assert code_of(caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": largest + "a"})) == (
        413,
        "message_too_large",
    )


def test_a_body_beyond_all_limits_is_told_so_in_json(caller: Caller, dialog: Dialog) -> None:
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000):
        answer = caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "a" * 1000})
    assert code_of(answer) == (413, "message_too_large")


def test_too_many_messages_are_told_when_to_come_back(caller: Caller, dialog: Dialog) -> None:
    with override_settings(MESSAGES_PER_MINUTE=2):
        for remaining in ("1", "0"):
            assert caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})[0] == 202
            assert caller.headers["x-ratelimit-remaining-requests"] == remaining
        answer = caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})
    assert code_of(answer) == (429, "rate_limited")
    assert int(caller.headers["Retry-After"]) > 0
    limits = [caller.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining", "reset")]
    assert limits == ["2", "0", "1m0s"]
    caller("GET", "/dialogs")
    assert "x-ratelimit-limit-requests" not in caller.headers
    assert caller.headers["x-request-id"]


@pytest.mark.postgresql
def test_a_dialog_that_somebody_holds_locked_is_told_to_try_again(caller: Caller, dialog: Dialog) -> None:
    with psycopg.connect(**_connection_parameters()) as other:
        other.execute("SELECT 1 FROM dialogs_dialog WHERE id = %s FOR UPDATE", [dialog.pk])
        answer = caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})
    assert code_of(answer) == (503, "unavailable")
    assert int(caller.headers["Retry-After"]) > 0
    assert dialog.turns.count() == 0


def _connection_parameters() -> dict[str, Any]:
    result = connection.get_connection_params()
    return {name: result[name] for name in ("dbname", "user", "host", "port") if name in result}


def test_stop_retry_and_close(caller: Caller, dialog: Dialog) -> None:
    caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})
    assert caller("POST", f"/dialogs/{dialog.pk}/stop") == (202, {"state": "idle"})
    assert caller.get(f"/dialogs/{dialog.pk}/turns")[0]["status"] == "stopped"
    assert caller("POST", f"/dialogs/{dialog.pk}/retry") == (202, {"state": "queued"})
    drive(dialog.pk)
    assert code_of(caller("POST", f"/dialogs/{dialog.pk}/retry")) == (409, "nothing_to_retry")
    assert caller("POST", f"/dialogs/{dialog.pk}/close") == (202, {"state": "closed"})
    assert code_of(caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})) == (409, "dialog_closed")


def test_a_waiting_message_can_be_taken_back(caller: Caller, dialog: Dialog) -> None:
    caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "one"})
    caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "two"})
    assert caller("DELETE", f"/dialogs/{dialog.pk}/messages/2") == (204, None)
    assert code_of(caller("DELETE", f"/dialogs/{dialog.pk}/messages/2")) == (409, "not_queued")
