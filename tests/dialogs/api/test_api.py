"""Each call of ``/api``: its shape and its codes, as the public contract names them."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import orjson
import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings

from dialogs.accounts.api_keys import create_key
from dialogs.actions import messages
from dialogs.models import Agent, Dialog, Question, SiteSettings
from dialogs.runtime.driver import drive
from dialogs.tools.human import ASK_HUMAN
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)

HEALTH = {
    "level", "reason", "prompt_tokens", "completion_tokens", "total_tokens", "model_context_limit", "limit_source",
    "optimal_max_tokens", "critical_max_tokens", "hard_util", "optimal_util",
}  # fmt: skip


class Caller:
    """A program with a key. Answers are (status, JSON); ``headers`` keeps those of the last one."""

    def __init__(self, owner: User) -> None:
        self.owner = owner
        self._client = Client(headers={"Authorization": f"Bearer {create_key(owner)}"})
        self.headers: Any = {}

    def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        answer = self._client.generic(
            method, f"/api{path}", b"" if body is None else orjson.dumps(body), "application/json", **options
        )
        self.headers = answer.headers
        assert answer["Content-Type"].startswith("application/json") or answer.status_code == 204, answer.content[:200]
        return answer.status_code, orjson.loads(answer.content) if answer.content else None

    def get(self, path: str, **options: Any) -> Any:
        status, result = self("GET", path, **options)
        assert status == 200, result
        return result


@pytest.fixture
def caller(script: Script) -> Caller:
    return Caller(UserFactory.create())


@pytest.fixture
def agent() -> Agent:
    return AgentFactory.create(id="coder")


@pytest.fixture
def dialog(caller: Caller, agent: Agent) -> Dialog:
    return messages.create_dialog(caller.owner, agent.pk, "A title")


def code_of(answer: tuple[int, Any]) -> tuple[int, str]:
    status, body = answer
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["message"]
    return status, body["error"]["code"]


# -- agents and dialogs --------------------------------------------------------------------------------------------------


def test_agents_tell_their_limits_and_why_one_cannot_be_used(caller: Caller, agent: Agent) -> None:
    AgentFactory.create(id="lost", model="nowhere")
    result = {row["id"]: row for row in caller.get("/agents")}
    assert {
        "id", "name", "provider", "model", "model_context_limit", "context_limit", "context_policy",
        "critical_policy", "usable", "reason",
    } <= set(result["coder"])  # fmt: skip
    assert result["coder"]["model_context_limit"] == 128_000
    assert (result["coder"]["usable"], result["coder"]["reason"]) == (True, None)
    assert result["lost"]["usable"] is False
    assert "nowhere" in result["lost"]["reason"]
    assert result["lost"]["model_context_limit"] is None


def test_a_dialog_is_opened_and_read(caller: Caller, agent: Agent) -> None:
    status, made = caller("POST", "/dialogs", {"agent": "coder", "title": "Importer"})
    assert status == 201
    assert {"id", "agent", "title", "round", "state", "health", "question", "policy", "created_at"} <= set(made)
    assert (made["agent"], made["title"], made["round"], made["state"]) == ("coder", "Importer", 1, "idle")
    assert (made["question"], made["policy"]) == (None, "none")
    assert set(made["health"]) == HEALTH
    assert (made["health"]["level"], made["health"]["reason"]) == ("unknown", "awaiting_report")
    assert made["health"]["prompt_tokens"] is None
    assert made["created_at"].endswith("Z")
    assert caller.get(f"/dialogs/{made['id']}") == made
    assert caller.get("/dialogs") == [made]


def test_an_unknown_agent_is_invalid(caller: Caller) -> None:
    assert code_of(caller("POST", "/dialogs", {"agent": "nobody"})) == (400, "invalid")


# -- messages ------------------------------------------------------------------------------------------------------------


def test_a_message_is_accepted_and_answered(caller: Caller, dialog: Dialog, script: Script) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    status, accepted = caller("POST", f"/dialogs/{dialog.pk}/messages", {"text": "Hi"})
    assert (status, accepted) == (202, {"seq": 1, "state": "queued"})
    drive(dialog.pk)
    first, second = caller.get(f"/dialogs/{dialog.pk}/turns")
    assert (first["role"], first["text"], first["status"], first["usage"]) == ("user", "Hi", "answered", None)
    assert {
        "seq", "round", "role", "text", "tool_calls", "tool_call_id", "status", "usage", "level", "created_at"
    } <= set(second)  # fmt: skip
    assert second["usage"] == {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
    assert (second["text"], second["level"], second["tool_calls"]) == ("Hello.", "healthy", [])
    (generation,) = caller.get(f"/dialogs/{dialog.pk}/generations")
    assert {
        "id", "round", "purpose", "outcome", "attempt", "usage", "level", "guided", "turn_seq", "started_at",
        "finished_at",
    } <= set(generation)  # fmt: skip
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
    [{}, {"text": None}, {"text": ["Hi"]}, {"text": ""}, {"text": " \n"}, {"text": "a\0b"}, [], "Hi",
     {"text": "Hi", "client_message_id": "x" * 121}],
)  # fmt: skip
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


# -- lists ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["turns", "generations", "events"])
@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "after=-1", "after=x", "after=99999999999", "after=1.5"]
)
def test_a_bad_window_is_invalid(caller: Caller, dialog: Dialog, path: str, query: str) -> None:
    answer = caller("GET", f"/dialogs/{dialog.pk}/{path}?{query}")
    assert code_of(answer) == (400, "invalid")
    assert answer[1]["error"]["message"].startswith(query.partition("=")[0])


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_pages_put_together_are_the_list(caller: Caller, agent: Agent, script: Script, limit: int) -> None:
    dialogs = [messages.create_dialog(caller.owner, agent.pk, str(number)) for number in range(5)]
    dialog = dialogs[0]
    send(dialog, *"abc")
    for path, key in (
        (f"/dialogs/{dialog.pk}/turns", "seq"),
        (f"/dialogs/{dialog.pk}/generations", "id"),
        (f"/dialogs/{dialog.pk}/events", "seq"),
        ("/dialogs", "id"),
    ):
        whole, pages, after = caller.get(f"{path}?limit=1000"), [], ""
        while page := caller.get(f"{path}?limit={limit}{after}"):
            assert len(page) <= limit
            pages += page
            after = f"&after={page[-1][key]}"
        assert pages == whole
        assert len(whole) >= 3
    assert [row["title"] for row in caller.get("/dialogs")] == list("01234")


def test_an_after_that_the_list_has_not_is_invalid(caller: Caller) -> None:
    assert code_of(caller("GET", f"/dialogs?after={uuid4()}")) == (400, "invalid")
    assert code_of(caller("GET", "/dialogs?after=7")) == (400, "invalid")


def test_events_are_numbered_without_gaps_and_turns_come_whole(caller: Caller, dialog: Dialog) -> None:
    send(dialog, "Hi")
    result = caller.get(f"/dialogs/{dialog.pk}/events")
    assert [row["seq"] for row in result] == list(range(1, len(result) + 1))
    texts = [row["data"]["text"] for row in result if row["type"] == "turn" and row["data"]["role"] == "assistant"]
    assert texts == ["Hello."]
    assert caller.get(f"/dialogs/{dialog.pk}/events?after={result[-2]['seq']}") == result[-1:]


# -- reminders -----------------------------------------------------------------------------------------------------------


def test_reminders_are_added_moved_changed_and_deleted(caller: Caller, dialog: Dialog) -> None:
    path = f"/dialogs/{dialog.pk}/reminders"
    status, first = caller("POST", path, {"text": "the goal"})
    assert status == 201
    assert set(first) == {"id", "position", "text", "est_tokens"}
    _, second = caller("POST", path, {"text": "the plan", "position": 0})
    assert [row["text"] for row in caller.get(path)] == ["the plan", "the goal"]
    assert caller("PATCH", f"{path}/{first['id']}", {"position": 0, "text": "the aim"})[1]["position"] == 0
    assert [row["text"] for row in caller.get(path)] == ["the aim", "the plan"]
    assert caller("DELETE", f"{path}/{second['id']}") == (204, None)
    assert code_of(caller("DELETE", f"{path}/{second['id']}")) == (404, "not_found")
    assert code_of(caller("PATCH", f"{path}/{first['id']}", {})) == (400, "invalid")
    assert code_of(caller("POST", path, {"text": " "})) == (400, "invalid")
    assert code_of(caller("POST", path, {"text": "a\0b"})) == (400, "invalid")
    assert code_of(caller("POST", path, {"text": "word " * 20_000})) == (409, "reminders_too_large")


# -- questions -----------------------------------------------------------------------------------------------------------


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
        "id": asked, "kind": "question", "text": "Which currency?",
    }  # fmt: skip
    (result,) = caller.get("/questions?state=open")
    assert {
        "id", "dialog", "kind", "text", "state", "attempts", "draft", "created_at", "resolved_by", "resolved_at"
    } <= set(result)  # fmt: skip
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
    operator = Caller(make_operator())
    status, result = operator("POST", f"/questions/{suspended}/resolve", exit_)
    assert (status, result["state"], result["action"]) == (200, "resolved", exit_["action"])
    assert result["resolved_by"] == operator.owner.username
    assert caller.get(f"/dialogs/{result['dialog']}")["state"] == state


@pytest.mark.parametrize(
    "exit_", [{}, {"action": "jump"}, {"action": "clear"}, {"action": "clear", "reminder_content": " "},
              {"action": "switch_model"}, {"action": "switch_model", "provider": "test", "model": "nowhere"}],
)  # fmt: skip
def test_an_exit_that_is_none_changes_nothing(caller: Caller, suspended: str, exit_: dict[str, str]) -> None:
    operator = Caller(make_operator())
    assert code_of(operator("POST", f"/questions/{suspended}/resolve", exit_)) == (400, "invalid")
    assert caller.get(f"/questions/{suspended}")["state"] == "open"


def test_a_state_that_is_none_is_invalid(caller: Caller) -> None:
    assert code_of(caller("GET", "/questions?state=maybe")) == (400, "invalid")


# -- export and settings ---------------------------------------------------------------------------------------------------


def test_the_export_is_the_whole_dialog(caller: Caller, dialog: Dialog) -> None:
    send(dialog, "What is ```this```?")
    answer = caller._client.get(f"/api/dialogs/{dialog.pk}/export?format=json")
    result = json.loads(b"".join(_pieces(answer)))
    assert set(result) == {
        "dialog",
        "rounds",
        "reminders",
        "questions",
        "remediations",
        "turns",
        "generations",
        "images",
    }
    assert result["turns"] == caller.get(f"/dialogs/{dialog.pk}/turns")
    assert result["generations"] == caller.get(f"/dialogs/{dialog.pk}/generations")
    assert result["dialog"] == caller.get(f"/dialogs/{dialog.pk}")
    assert answer["Content-Disposition"].startswith("attachment")
    text = b"".join(_pieces(caller._client.get(f"/api/dialogs/{dialog.pk}/export?format=md"))).decode()
    assert "### User\n\nWhat is ```this```?" in text
    assert "### Assistant\n\nHello." in text
    assert code_of(caller("GET", f"/dialogs/{dialog.pk}/export?format=pdf")) == (400, "invalid")


def _pieces(answer: Any) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in answer.streaming_content]

    return async_to_sync(read)()


def test_settings_change_one_by_one(caller: Caller) -> None:
    result = caller.get("/settings")
    assert result["auto_hide_seconds"] == 3
    assert "pruning_agent" not in result
    assert caller("PATCH", "/settings", {"theme": "dark"}) == (200, result | {"theme": "dark"})
    assert caller.get("/settings")["theme"] == "dark"
    for wrong in ({"theme": "pink"}, {"auto_hide_seconds": 11}, {"auto_hide_seconds": 0}, {"highlight_p1": "maybe"}):
        assert code_of(caller("PATCH", "/settings", wrong)) == (400, "invalid")
    status, refused = caller("PATCH", "/settings", {"auto_hide": 5, "theme": "light"})
    assert (status, refused["error"]["code"]) == (400, "invalid")
    assert "there is no setting auto_hide" in refused["error"]["message"]
    assert caller.get("/settings")["theme"] == "dark"


def test_only_staff_choose_the_pruning_agent(caller: Caller, agent: Agent) -> None:
    assert code_of(caller("PATCH", "/settings", {"pruning_agent": "coder"})) == (403, "staff_only")
    staff = Caller(make_operator())
    assert staff("PATCH", "/settings", {"pruning_agent": "coder"})[1]["pruning_agent"] == "coder"
    assert SiteSettings.current().pruning_agent_id == "coder"
    assert code_of(staff("PATCH", "/settings", {"pruning_agent": "nobody"})) == (400, "invalid")
    assert staff("PATCH", "/settings", {"pruning_agent": None})[1]["pruning_agent"] is None


# -- who is asking -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer dmk_wrong", "Basic eDp5", "dmk_wrong", "Bearer \0"]
)
def test_without_a_key_that_holds_the_answer_is_401(script: Script, header: str) -> None:
    for method, path in (("get", "/api/agents"), ("post", "/api/dialogs"), ("get", f"/api/dialogs/{uuid4()}/events")):
        answer = getattr(Client(headers={"Authorization": header}), method)(path)
        assert code_of((answer.status_code, answer.json())) == (401, "unauthorized")


def test_nobody_at_all_is_401(script: Script) -> None:
    for method, path in (("get", "/api/agents"), ("post", "/api/dialogs")):
        answer = getattr(Client(enforce_csrf_checks=True), method)(path)
        assert code_of((answer.status_code, answer.json())) == (401, "unauthorized")


def test_a_wrong_key_beside_a_session_is_401(caller: Caller) -> None:
    client = Client(headers={"Authorization": "Bearer dmk_wrong"})
    client.force_login(caller.owner)
    assert client.get("/api/agents").status_code == 401


def test_a_session_may_read_and_needs_the_token_to_write(caller: Caller, agent: Agent) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(caller.owner)
    assert client.get("/api/agents").status_code == 200
    refused = client.post("/api/dialogs", {"agent": "coder"}, "application/json")
    assert code_of((refused.status_code, refused.json())) == (403, "csrf_failed")
    token = "a" * 32
    client.cookies["csrftoken"] = token
    made = client.post("/api/dialogs", {"agent": "coder"}, "application/json", headers={"X-CSRFToken": token})
    assert made.status_code == 201


def test_a_revoked_key_and_an_inactive_owner_are_401(caller: Caller) -> None:
    caller.owner.api_keys.update(revoked_at="2026-01-01T00:00Z")
    assert code_of(caller("GET", "/agents")) == (401, "unauthorized")
    other = Caller(UserFactory.create())
    User.objects.filter(pk=other.owner.pk).update(is_active=False)
    assert code_of(other("GET", "/agents")) == (401, "unauthorized")


# -- addresses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/dialogs/", "/dialogs/7", "/dialogs/7/turns", "/questions/x/answer", "/dialogs/../x"]
)
def test_an_address_that_is_none_is_404_in_json(caller: Caller, path: str) -> None:
    assert code_of(caller("GET", path)) == (404, "not_found")
    assert code_of(caller("POST", path)) == (404, "not_found")


@pytest.mark.parametrize(("method", "path"), [("PUT", "/dialogs"), ("DELETE", "/agents"), ("POST", "/agents")])
def test_a_method_that_is_not_offered_is_405_in_json(caller: Caller, method: str, path: str) -> None:
    assert code_of(caller(method, path)) == (405, "method_not_allowed")
    assert caller.headers["Allow"]


def test_openapi_names_every_call_and_the_docs_need_nobody_else(caller: Caller) -> None:
    result = Client().get("/api/openapi.json").json()
    assert {"/api/agents", "/api/dialogs/{dialog_id}/messages", "/api/questions/{question_id}/resolve"} <= set(
        result["paths"]
    )
    assert all(
        call["responses"]["default"]["content"]["application/json"]["schema"]
        == {"$ref": "#/components/schemas/Problem"}
        for calls in result["paths"].values()
        for call in calls.values()
    )
    assert {"Problem", "Error", "DialogOut"} <= set(result["components"]["schemas"])
    page = Client().get("/api/docs")
    assert page.status_code == 200
    assert "http" not in page.content.decode().replace("http-equiv", "")


def test_the_owner_may_resolve_once_an_operator_allows_it(
    caller: Caller, suspended: str, django_user_model: Callable[..., Any]
) -> None:
    from django.contrib.auth.models import Permission

    caller.owner.user_permissions.add(Permission.objects.get(codename="resolve_question"))
    assert caller("POST", f"/questions/{suspended}/resolve", {"action": "close"})[0] == 200
