"""Context by hand through ``/api``: look, rewrite, clear, undo, and find again what was removed."""

import pytest

from dialogs.actions import messages
from dialogs.models import Agent, Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def long_dialog(caller: Caller, script: Script) -> Dialog:
    return talked(caller, script, context_length=8_000, context_policy="retention")


def talked(caller: Caller, script: Script, *, context_length: int, context_policy: str) -> Dialog:
    """Eight long messages with their answers."""
    usage = {"prompt_tokens": 900, "completion_tokens": 300}
    script({"text": "word " * 300, "usage": usage}, context_length=context_length)
    agent: Agent = AgentFactory.create(context_policy=context_policy)
    dialog = messages.create_dialog(caller.owner, agent.pk)
    for number in range(8):
        send(dialog, f"message {number} " + "about the zebra " * 30)
    return dialog


def test_the_context_is_shown_unit_by_unit(caller: Caller, long_dialog: Dialog) -> None:
    result = caller.get(f"/dialogs/{long_dialog.pk}/context")
    assert {"policy", "est_tokens", "limit", "units"} <= set(result)
    assert "preview" not in result
    assert (result["policy"], result["limit"], len(result["units"])) == ("retention", 8_000, 16)
    assert {"id", "role", "kind", "priority", "est_tokens", "source", "score"} <= set(result["units"][0])
    for unit in result["units"]:
        assert set(unit["points"]) == {"recency", "role", "keywords", "length"}
        assert sum(unit["points"].values()) == pytest.approx(unit["score"], abs=0.2)


def test_a_preview_of_a_prune_tells_what_the_prune_then_takes(caller: Caller, script: Script) -> None:
    """No window of 8,000 was full, so the dialog moves to a smaller model first."""
    dialog = talked(caller, script, context_length=20_000, context_policy="none")
    script({"text": "unused"}, context_length=2_500)
    path = f"/dialogs/{dialog.pk}"
    seen = caller.get(f"{path}/context?preview=prune")
    preview = seen["preview"]
    assert preview["problem"] is None
    assert preview["est_after"] <= 2_000 < preview["est_before"] == seen["est_tokens"]
    assert caller.get(f"{path}/remediations") == []
    assert caller("POST", f"{path}/prune") == (202, {"state": "queued"})
    drive(dialog.pk)
    (run,) = caller.get(f"{path}/remediations")
    assert [unit["id"] for unit in run["removed"]] == [unit["id"] for unit in preview["removed"]]
    assert (run["est_before"], run["est_after"]) == (preview["est_before"], preview["est_after"])


def test_a_preview_tells_what_would_go_and_changes_nothing(caller: Caller, long_dialog: Dialog) -> None:
    before = caller.get(f"/dialogs/{long_dialog.pk}")
    assert caller.get(f"/dialogs/{long_dialog.pk}/context?preview=prune")["preview"]["removed"] == []  # it all fits
    for kind in ("break", "compact"):
        preview = caller.get(f"/dialogs/{long_dialog.pk}/context?preview={kind}")["preview"]
        assert preview["est_after"] < preview["est_before"]
        assert preview["removed"]
    assert caller.get(f"/dialogs/{long_dialog.pk}") == before
    assert code_of(caller("GET", f"/dialogs/{long_dialog.pk}/context?preview=guess")) == (400, "invalid")


@pytest.mark.parametrize("call", ["break", "fresh-start"])
def test_a_rewrite_by_hand_is_performed_listed_and_undone(caller: Caller, long_dialog: Dialog, call: str) -> None:
    path = f"/dialogs/{long_dialog.pk}"
    before = caller.get(f"{path}/context")["units"]
    assert caller("POST", f"{path}/{call}") == (202, {"state": "queued"})
    drive(long_dialog.pk)
    (run,) = caller.get(f"{path}/remediations")
    assert {
        "id",
        "policy",
        "reason",
        "strategies",
        "est_before",
        "est_after",
        "removed",
        "undone",
        "created_at",
    } <= set(run)
    assert run["est_after"] < run["est_before"]
    assert caller.get(f"{path}")["health"]["reason"] == "awaiting_report"
    removed = caller.get(f"{path}/archive")
    result = caller.get(f"{path}/archive?q=zebra&limit=1000")
    assert {row["id"] for row in result} == {row["id"] for row in removed if "zebra" in row["text"]}
    for row in result:
        text, (start, end) = row["found"]["text"], row["found"]["marks"][0]
        assert text[start:end] == "zebra"
    assert caller.get(f"{path}/archive?q=giraffe") == []
    whole = caller.get(f"{path}/remediations/{run['id']}")
    assert whole.items() >= run.items() and whole["facts"]["all"] == sum(whole["facts"]["counts"].values())
    assert [unit["unit"] for unit in whole["before"]] == [unit["unit"] for unit in removed]
    assert all(row["text"].startswith(unit["text"]) for row, unit in zip(removed, whole["before"], strict=True))
    assert any("turns" in unit for unit in whole["after"]) and any("sources" in unit for unit in whole["after"])
    assert code_of(caller("GET", f"{path}/remediations/99999999999")) == (404, "not_found")
    status, undone = caller("POST", f"{path}/remediations/{run['id']}/undo")
    assert (status, undone["undone"]) == (200, True)
    assert caller.get(f"{path}/context")["units"] == before
    again = caller("POST", f"{path}/remediations/{run['id']}/undo")
    assert code_of(again) == (409, "not_newest") and "undone already" in again[1]["error"]["message"]
    assert code_of(caller("POST", f"{path}/remediations/99999999999/undo")) == (404, "not_found")


def test_recall_is_tried_without_a_message(caller: Caller, long_dialog: Dialog) -> None:
    path = f"/dialogs/{long_dialog.pk}"
    nothing = {"est_tokens": 0, "turns": [], "text": ""}
    assert caller("POST", f"{path}/recall", {"text": "message 0"}) == (200, nothing), "all is in sight"
    caller("POST", f"{path}/clear", {"reminder_content": "Go on with step 3."})
    drive(long_dialog.pk)
    turns = caller.get(f"{path}/turns?limit=1000")
    status, recalled = caller("POST", f"{path}/recall", {"text": "What did message 0 say about the zebra?"})
    assert status == 200 and recalled["turns"] and recalled["est_tokens"] > 0 and "zebra" in recalled["text"]
    assert caller.get(f"{path}/turns?limit=1000") == turns
    assert code_of(caller("POST", f"{path}/recall", {"text": ""})) == (400, "invalid")


def test_a_person_clears_the_agents_mind(caller: Caller, long_dialog: Dialog) -> None:
    path = f"/dialogs/{long_dialog.pk}"
    assert caller("POST", f"{path}/clear", {"reminder_content": "Go on with step 3."})[0] == 202
    drive(long_dialog.pk)
    result = caller.get(path)
    assert (result["round"], result["state"], result["health"]["reason"]) == (2, "idle", "awaiting_report")
    assert code_of(caller("POST", f"{path}/clear", {"reminder_content": " "})) == (400, "invalid")
    assert code_of(caller("POST", f"{path}/clear", {})) == (400, "invalid")


def test_a_clear_is_undone_and_brought_back(caller: Caller, long_dialog: Dialog) -> None:
    path = f"/dialogs/{long_dialog.pk}"
    before = caller.get(f"{path}/context")
    assert code_of(caller("POST", f"{path}/clear/undo")) == (409, "not_newest"), "there is none"
    caller("POST", f"{path}/clear", {"reminder_content": "Go on with step 3."})
    assert code_of(caller("POST", f"{path}/clear/undo")) == (409, "not_newest"), "it is still to come"
    drive(long_dialog.pk)
    cleared = caller.get(f"{path}/context")
    status, run = caller("POST", f"{path}/clear/undo")
    assert (status, run["policy"], run["removed"], run["undone"]) == (200, "undo_clear", [], False)
    assert (run["est_before"], run["est_after"]) == (cleared["est_tokens"], caller.get(f"{path}/context")["est_tokens"])
    assert [unit["text"] for unit in caller.get(f"{path}/context")["units"]] == [
        unit["text"] for unit in before["units"]
    ]
    assert code_of(caller("POST", f"{path}/clear/undo")) == (409, "not_newest"), "it is undone already"
    assert caller("POST", f"{path}/remediations/{run['id']}/undo")[0] == 200
    assert caller.get(f"{path}/context")["est_tokens"] == cleared["est_tokens"]


def test_a_rewrite_of_another_dialog_cannot_be_undone_through_ones_own(caller: Caller, long_dialog: Dialog) -> None:
    caller("POST", f"/dialogs/{long_dialog.pk}/break")
    drive(long_dialog.pk)
    (run,) = caller.get(f"/dialogs/{long_dialog.pk}/remediations")
    other = Caller(UserFactory.create())
    own = messages.create_dialog(other.owner, long_dialog.agent_id)
    assert code_of(other("POST", f"/dialogs/{own.pk}/remediations/{run['id']}/undo")) == (404, "not_found")
