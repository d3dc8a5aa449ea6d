"""Keys and sessions that may call ``/api``, addresses that exist, and their description."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.models import Agent
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.extras
def test_a_refused_key_is_told_why(caller: Caller) -> None:
    def why() -> str:
        return str(caller("GET", "/agents")[1]["error"]["message"])

    keys, mark = caller.owner.api_keys, f"…{caller.owner.api_keys.get().last_four}"
    keys.update(expires_at="2026-01-01T00:00Z")
    assert why().startswith(f"The API key {mark} has expired. Make one in the settings")
    keys.update(revoked_at="2026-01-01T00:00Z")
    assert why().startswith(f"The API key {mark} was revoked on 2026-01-01. ")
    keys.all().delete()
    assert why().startswith("This API key is not valid. ")
    for path in ("/v1/chat/completions", "/mcp"):
        answer = Client().post(path, "{}", "application/json")
        assert "No API key was sent: `Authorization: Bearer KEY`." in answer.content.decode()


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
