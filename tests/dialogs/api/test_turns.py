"""Branches, versions, feedback and pins by ``/api``."""

from uuid import UUID

import pytest

from dialogs.actions import messages
from dialogs.models import Dialog, RecallChoice
from dialogs.runtime.driver import drive
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script({"text": "Yes."})
    dialog = make_dialog()
    send(dialog, "one")
    return dialog


@pytest.fixture
def caller(dialog: Dialog) -> Caller:
    return Caller(dialog.owner)


def test_branches_tell_where_they_begin_and_versions_name_them(caller: Caller, dialog: Dialog) -> None:
    here = f"/dialogs/{dialog.pk}/turns"
    status, forked = caller("POST", f"{here}/2/fork", {})
    assert (status, forked["forked_from"], forked["own_from"], forked["state"]) == (201, str(dialog.pk), 3, "idle")
    status, again = caller("POST", f"{here}/2/regenerate", {"provider": "demo", "model": "echo", "request_id": "r"})
    assert (status, again["own_from"], again["model"], again["state"]) == (201, 2, "echo", "queued")
    repeated = {"provider": "demo", "model": "echo", "request_id": "r"}
    assert caller("POST", f"{here}/2/regenerate", repeated)[1]["id"] == again["id"]
    status, worded = caller("POST", f"{here}/1/edit", {"text": "one again"})
    assert (status, worded["own_from"]) == (201, 1)
    drive(UUID(again["id"]))
    versions = [{"dialog": str(dialog.pk), "current": False}, {"dialog": again["id"], "current": True}]
    assert caller.get(f"/dialogs/{again['id']}/turns/2/versions") == versions
    assert caller.get(f"{here}/1/versions")[1] == {"dialog": worded["id"], "current": False}
    assert caller.get(f"/dialogs/{forked['id']}/turns/2/versions")[0]["dialog"] == forked["id"]
    assert [turn["text"] for turn in caller.get(f"/dialogs/{forked['id']}/turns")] == ["one", "Yes."]


def test_refusals_say_why(caller: Caller, dialog: Dialog) -> None:
    here = f"/dialogs/{dialog.pk}/turns"
    assert code_of(caller("POST", f"{here}/2/edit", {"text": "x"})) == (409, "not_a_message")
    assert code_of(caller("POST", f"{here}/7/fork", {})) == (404, "not_found")
    assert code_of(caller("POST", f"{here}/1/edit", {"text": " "})) == (400, "invalid")
    assert code_of(caller("POST", f"{here}/2/regenerate", {"model": "nosuch"})) == (409, "agent_unusable")
    assert code_of(caller("GET", f"{here}/{'9' * 30}/versions")) == (404, "not_found")
    messages.post_message(dialog.pk, "two")
    assert code_of(caller("POST", f"{here}/2/fork", {})) == (409, "dialog_busy")
    assert Dialog.objects.count() == 1


def test_an_answer_is_rated_and_a_turn_pinned(caller: Caller, dialog: Dialog) -> None:
    here = f"/dialogs/{dialog.pk}/turns"
    for given in ("up", "down", None):
        assert caller("PUT", f"{here}/2/feedback", {"feedback": given})[0] == 204
        assert [turn["feedback"] for turn in caller.get(here)] == [None, given]
    assert code_of(caller("PUT", f"{here}/2/feedback", {"feedback": "loved"})) == (400, "invalid")
    assert caller("PUT", f"{here}/1/pin", {"pinned": True})[0] == 204 and RecallChoice.objects.get().seq == 1
    assert caller("PUT", f"{here}/1/pin", {"pinned": False})[0] == 204 and not RecallChoice.objects.exists()
