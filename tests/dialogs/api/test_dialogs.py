"""Agents, dialogs, reminders, export and settings by ``/api``."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from dialogs.models import Agent, Dialog, SiteSettings
from tests.dialogs.api.caller import HEALTH, Caller, code_of
from tests.dialogs.factories import AgentFactory, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)


def test_agents_tell_their_limits_and_why_one_cannot_be_used(caller: Caller, agent: Agent) -> None:
    AgentFactory.create(id="lost", model="nowhere")
    result = {row["id"]: row for row in caller.get("/agents")}
    assert set(
        """
        id name provider model model_context_limit context_limit context_policy critical_policy usable reason
        """.split()
    ) <= set(result["coder"])
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
