"""An agent asks another one in a side dialog."""

import re

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test import Client

from dialogs.actions import expiry, folders, messages, questions, rounds, sharing
from dialogs.context.model_calls import Answer
from dialogs.context.request import prepare
from dialogs.context.spending import NoRoomInBudget, check_room
from dialogs.context.view import view_of
from dialogs.errors import Conflict
from dialogs.extras.teams import side_dialogs
from dialogs.extras.teams.models import SideDialog
from dialogs.extras.teams.side_dialogs import Ask
from dialogs.models import Agent, Artifact, Dialog, Generation, Turn
from dialogs.runtime.driver import drive
from dialogs.runtime.materials import materials_of
from dialogs.store import events
from dialogs.store.change import open_change
from dominds.llm.messages import Role
from remediation.context import UnitRole
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.extras.teams.conftest import REPORT, TASK, asking, play, results, side_of, steps
from tests.dialogs.factories import AgentFactory, make_operator, send
from tests.dialogs.spans import OPERATIONS, Recorder, recorder

__all__ = ["recorder"]

pytestmark = pytest.mark.django_db(transaction=True)


def last_text(dialog: Dialog, **which: str) -> str:
    turn = dialog.turns.filter(**which).last()
    assert turn is not None
    return turn.text


def test_the_last_answer_of_a_side_dialog_is_the_calls_result(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    assert (lead.state, lead.lease_owner, results(lead)) == ("queued", "", [])
    side = side_of(lead)
    assert (side.dialog.owner, side.dialog.origin, side.dialog.state) == (lead.owner, "agent", "queued")

    drive(side.pk)
    lead.refresh_from_db()
    assert (results(lead), lead.wake_at) == ([REPORT], None)
    notices = [event["data"]["text"] for event in events.after(lead.pk, 0) if event["type"] == "notice"]
    assert notices == [f"Side dialog scout begins: “{TASK}”"]
    drive(lead.pk)
    assert last_text(lead) == "So that is it."
    sent = side.dialog.turns.get(role="user").text
    assert sent.startswith(TASK) and "plan" not in sent


def test_a_childs_end_and_its_result_are_one_transaction(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    side = side_of(lead)
    with open_change(side.pk) as change:
        change.take_next_message()
    with pytest.raises(RuntimeError), transaction.atomic(), open_change(side.pk) as change:
        change.turn("assistant", "complete", text=REPORT)
        change.end_message("answered")
        change.finish()
        assert results(lead) == [REPORT]
        raise RuntimeError("the process dies before the commit")
    assert (results(lead), side_of(lead).answered_at, side_of(lead).dialog.state) == ([], None, "queued")


def test_calls_of_one_answer_work_side_by_side(lead: Dialog, script: Script) -> None:
    script(*steps(asking(), asking(name="second"), {"name": "side_dialogs", "arguments": {}}))
    send(lead, "plan")
    assert SideDialog.objects.filter(parent=lead, dialog__state="queued").count() == 2
    (listed,) = results(lead)
    assert listed.count("asked “Find the hut”: at work") == 2
    play(lead)
    assert (lead.state, results(lead)[1:], last_text(lead)) == ("idle", [REPORT, REPORT], "So that is it.")


def test_without_waiting_the_report_comes_as_a_message(lead: Dialog, script: Script) -> None:
    script(*steps(asking(wait=False)))
    send(lead, "plan")
    assert (lead.state, last_text(lead)) == ("idle", "So that is it.")
    play(lead)
    assert last_text(lead, role="user") == f"[Runtime: the side dialog scout reports.]\n{REPORT}"
    assert lead.turns.filter(role="assistant", text="So that is it.").count() == 2


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"error": {"kind": "refused", "message": "There is no credit left"}}, "There is no credit left"),
        ({"text": ""}, "It ended without a word."),
    ],
)
def test_who_brought_no_report_is_known_from_those_who_did(
    lead: Dialog, script: Script, answers: dict[str, object], why: str
) -> None:
    script(*(step for step in steps(asking(name="hut")) if step.get("match") != TASK), {"match": TASK, **answers})
    play(send(lead, "plan"))
    assert lead.reminders.get().text.endswith(f"asked “{TASK}”: did not report: {why}")
    page = browser_of(lead.owner).get(f"/d/{lead.pk}/").content.decode()
    assert re.search(rf'class="pill">did not report</span>.*team-newest[^>]*>\s*{why}\s*<', page, re.S)
    script(*steps(asking(name="hut")))
    play(send(lead, "plan"))
    assert lead.reminders.get().text.endswith("reported")


def test_the_teams_head_leads_to_the_question_of_a_side_dialog(lead: Dialog, script: Script) -> None:
    asks = {"match": TASK, "tool_calls": [{"name": "ask_human", "arguments": {"question": "Which hut?"}}]}
    script(*(step for step in steps(asking(wait=False)) if step.get("match") != TASK), asks)
    play(send(lead, "plan"))
    page = browser_of(lead.owner).get(f"/d/{lead.pk}/").content.decode()
    asked = side_of(lead).dialog.questions.get()
    assert re.search(rf'class="pill warn" href="/q4h/{asked.pk}/">\s*1 waits for a person\s*</a>', page)


def test_no_message_of_an_agent_stands_as_a_persons(lead: Dialog, script: Script) -> None:
    script(*steps(asking(wait=False)))
    play(send(lead, "plan"))
    said = [unit for unit in view_of(lead).units if "the side dialog scout reports" in unit.text]
    assert [(unit.role, unit.messages[0].role) for unit in said] == [(UnitRole.ASSISTANT, Role.USER)]
    authors = {turn.tool_name: turn.author for turn in lead.turns.filter(role="user")}
    assert authors == {"": lead.owner, "ask_agent": None}
    browser = browser_of(lead.owner)
    pages = [browser.get(f"/d/{dialog.pk}/").content.decode() for dialog in (lead, side_of(lead).dialog)]
    speakers = [re.findall(r'class="who">\s*(.*?)\s*</h3>', page) for page in pages]
    assert speakers == [["You", "Lead", "Lead", "Another agent", "Lead"], ["Another agent", "Scout"]]
    shared = Client().get(f"/shared/{sharing.token_of(sharing.make_link(lead.pk, lead.owner))}/").content.decode()
    assert re.findall(r'class="who">\s*(.*?)\s*</h2>', shared) == ["Person", "Lead", "Another agent", "Lead"]


def test_a_named_side_dialog_is_gone_on_in(lead: Dialog, script: Script) -> None:
    script(*steps(asking(name="hut")))
    play(send(lead, "plan"))
    play(send(lead, "plan"))
    assert side_of(lead).dialog.turns.filter(role="user").count() == 2
    assert results(lead) == [REPORT, REPORT]


def test_a_refused_ask_says_why_and_opens_nothing(lead: Dialog, script: Script) -> None:
    script(*steps(asking(name="a"), asking(name="a"), asking(agent="lead")))
    send(lead, "plan")
    refused = results(lead)
    assert refused[0] == "a is still at work. Wait for its report, or use tell_agent."
    assert refused[1].startswith("ask_agent: agent: 'lead' is not one of")
    assert SideDialog.objects.count() == 1


def test_stop_ends_all_that_works_below(lead: Dialog, script: Script) -> None:
    AgentFactory.create(id="digger", recall=False)
    Agent.objects.filter(pk="scout").update(extras={"colleagues": ["digger"]})
    script(*steps(asking(), asking(name="other")))
    send(lead, "plan")
    first = SideDialog.objects.filter(parent=lead)[0]
    with open_change(first.pk) as change:
        side_dialogs.ask(change, side_dialogs.Ask("call_of_first", "digger", "dig"))
    messages.stop(lead.pk, lead.owner)
    lead.refresh_from_db()
    assert lead.state == "idle"
    below = Dialog.objects.filter(origin="agent")
    assert set(below.values_list("state", flat=True)) == {"closed"} and below.count() == 3
    assert set(SideDialog.objects.values_list("reason", flat=True)) == {"a person pressed stop in the dialog above"}
    before = Generation.objects.count()
    for dialog in below:
        drive(dialog.pk)
    assert Generation.objects.count() == before
    assert results(lead) == ["Not run: a person pressed stop."] * 2


def test_a_side_dialog_that_a_person_ends_reports_so(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    messages.close(side_of(lead).pk, lead.owner)
    assert results(lead) == ["No report. It was closed."]
    assert "ended: it was closed" in lead.reminders.get().text


def test_a_suspended_side_dialog_does_not_hold_up_its_parent(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    side = side_of(lead)
    Dialog.objects.filter(pk=side.pk).update(budget_usd=0)
    drive(side.pk)
    side.dialog.refresh_from_db()
    (told,) = results(lead)
    assert side.dialog.state == "suspended" and told.startswith("scout is suspended until a person decides: This dial")
    assert "suspended until a person decides" in lead.reminders.get().text
    play(lead)
    assert lead.state == "idle"

    question = side.dialog.questions.get(state="open")
    questions.resolve(question.pk, make_operator(), "raise_budget", budget_usd="5")
    play(lead)
    assert last_text(lead, role="user").endswith(REPORT)


def test_the_roots_budget_holds_for_the_whole_team(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    Dialog.objects.filter(pk=lead.pk).update(budget_usd=1)
    send(lead, "plan")
    side = side_of(lead)
    Dialog.objects.filter(pk=side.pk).update(cost_usd="1.25")
    play(lead)
    assert results(lead) == ["No report. The team has cost $1.25, and the budget of its first dialog is $1.00."]
    assert lead.state == "suspended"
    asked = lead.questions.get(state="open").text
    assert asked.startswith("This dialog and those that it opened have cost $1.25, and the budget is $1.00.")
    assert not side.dialog.questions.exists()


def test_no_call_begins_below_a_budget_that_others_used_up(lead: Dialog, script: Script) -> None:
    script(*steps(asking(), asking(name="second")))
    Dialog.objects.filter(pk=lead.pk).update(budget_usd=1)
    send(lead, "plan")
    first, second = SideDialog.objects.filter(parent=lead)
    whole = Dialog.objects.whole().get(pk=first.pk)
    check_room(whole, whole.cost_usd)
    Dialog.objects.filter(pk=second.pk).update(cost_usd="1.25")  # another call has ended since the policies looked
    with pytest.raises(NoRoomInBudget, match=r"The team has cost \$1.25, and the budget of its first dialog is \$1.00"):
        check_room(whole, whole.cost_usd)


def test_no_call_begins_below_a_side_dialog_that_has_ended(lead: Dialog, script: Script) -> None:
    """They are closed after the commit that ends them, one by one, or by the sweeper: meanwhile workers find them."""
    script(*steps(asking()))
    send(lead, "plan")
    middle = side_of(lead)
    Agent.objects.filter(pk="scout").update(extras={"colleagues": ["lead-2"]})
    AgentFactory.create(id="lead-2")
    with open_change(middle.pk) as change:
        leaf = side_dialogs.ask(change, Ask("c1", "lead-2", "Name it"))
    SideDialog.objects.filter(pk=middle.pk).update(owes="end", ended_at=Now(), reason="a person pressed stop above")
    for side in (leaf, middle):
        drive(side.pk)
    assert not Generation.objects.exclude(dialog=lead).exists()
    side_dialogs.sweep()
    assert set(Dialog.objects.exclude(pk=lead.pk).values_list("state", flat=True)) == {"closed"}


def test_a_side_dialogs_runs_are_traced_below_the_call_that_asked(
    lead: Dialog, script: Script, recorder: Recorder
) -> None:
    script(*steps(asking()))
    play(send(lead, "plan"))
    (asked,), (run,) = recorder.named("execute_tool ask_agent"), recorder.named("invoke_agent scout")
    assert run.parent is asked and asked.parent in recorder.named("invoke_agent lead")
    (call,) = (span for span in recorder.spans if span.parent is run)
    assert call.attributes["gen_ai.operation.name"] == "chat"
    assert call.get_span_context().trace_id == asked.get_span_context().trace_id
    used = {span.attributes.get("gen_ai.operation.name") for span in recorder.spans}
    assert used == {"invoke_agent", "execute_tool", "chat"} and used <= OPERATIONS


def test_a_long_report_is_put_aside_and_can_be_read(lead: Dialog, script: Script) -> None:
    script(*steps(asking(), report="The hut is far away. " * 10_000))
    play(send(lead, "plan"))
    (shown,) = results(lead)
    assert shown.startswith("The report has 209,999 characters.") and len(shown) < 6_500
    assert "read_artifact" in shown
    assert len(Artifact.objects.get(dialog=lead).text) == 209_999


def test_side_dialogs_stay_in_sight_after_a_clear(lead: Dialog, script: Script) -> None:
    script(*steps(*(asking(f"{TASK} {number}", name=f"s{number}", wait=False) for number in range(8))))
    send(lead, "plan")
    for _ in range(3):
        with open_change(lead.pk) as change:
            rounds.clear_within(change, "Goal: the trip.", cause="person")
    dialog = Dialog.objects.whole().get(pk=lead.pk)
    served, view, tools, _ = materials_of(dialog)
    request = prepare(dialog, served.model, Answer(view=view, tools=tools, output=None)).request
    seen = "\n".join(message.text for message in request.messages)
    for number in range(8):
        assert f"- s{number} (agent scout), asked “Find the hut {number}”: at work" in seen


def test_side_dialogs_are_shared_deleted_restored_and_erased_with_their_root(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    play(send(lead, "plan"))
    group = Group.objects.create(name="birds")
    lead.owner.groups.add(group)
    sharing.share(lead.pk, "birds", lead.owner)
    side = side_of(lead)
    assert side.dialog.group == group

    folders.delete(lead.owner, [lead.pk])
    assert not Dialog.objects.filter(pk=side.pk).exists()
    folders.bring_back(lead.owner, [lead.pk])
    assert Dialog.objects.filter(pk=side.pk).exists()
    expiry.erase_now(lead.pk)
    expiry.remove_expired()
    assert not Turn.objects.filter(dialog=side.pk).exists()
    assert SideDialog.objects.get(pk=side.pk).task == ""


def test_what_was_lost_with_a_process_is_made_up_for(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    side = side_of(lead)
    drive(side.pk)
    SideDialog.objects.filter(pk=side.pk).update(answered_at=None, waits=True)
    Turn.objects.filter(dialog=lead, role="tool").delete()  # as if the extension had been off meanwhile
    side_dialogs.sweep()
    assert results(lead) == [REPORT]


@pytest.mark.postgresql
def test_one_that_somebody_holds_locked_keeps_no_other_waiting(lead: Dialog, script: Script) -> None:
    script(*steps(asking(name="held", wait=False), asking(name="free", wait=False)))
    send(lead, "plan")
    SideDialog.objects.update(owes="end", ended_at=Now(), reason="a person pressed stop above")
    held, free = SideDialog.objects.select_related("dialog")
    with psycopg.connect(**connection.get_connection_params()) as other, connection.cursor() as cursor:
        other.execute("SELECT 1 FROM dialogs_dialog WHERE id = %s FOR UPDATE", [held.pk])
        cursor.execute("SET lock_timeout = '50ms'")
        side_dialogs.sweep()
        cursor.execute("RESET lock_timeout")
    assert (held.name, free.name) == ("held", "free")
    free.dialog.refresh_from_db()
    assert free.dialog.state == "closed"
    assert SideDialog.objects.get(owes="end") == held


def test_a_message_reaches_a_side_dialog_at_work_once(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    side = side_of(lead)
    for _ in range(2):
        side_dialogs.tell(lead.pk, "scout", "also the path", "call_7_1")
    assert side.dialog.turns.filter(text="also the path").count() == 1
    drive(side.pk)
    with pytest.raises(Conflict, match="scout has reported already"):
        side_dialogs.tell(lead.pk, "scout", "too late", "call_8_1")


def test_pages_and_programs_see_the_team(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    send(lead, "plan")
    side, browser = side_of(lead), browser_of(lead.owner)
    for address in (f"/d/{lead.pk}/", f"/d/{side.pk}/", f"/d/{lead.pk}/team/panel/"):
        page = browser.get(address).content.decode()
        assert "1 side dialog," in page and "at work" in page, address
    team = browser.get(f"/api/dialogs/{side.pk}/team").json()
    (member,) = team["members"]
    assert (team["root"], team["at_work"]) == (str(lead.pk), 1)
    assert (member["name"], member["agent"], member["level"]) == ("scout", "scout", 1)

    task = f"/api/dialogs/{side.pk}/team/task"
    given = {"section": "goal", "text": "A night in the hut.", "version": 0}
    assert browser.put(task, given, content_type="application/json").json()["version"] == 1
    assert browser.put(task, given, content_type="application/json").json()["error"]["code"] == "stale_version"
    browser.post(f"/d/{lead.pk}/team/task/", {"part": "plan", "text": "Walk.", "version": "1"})
    browser.post(f"/d/{lead.pk}/team/task/", {"restore": "1", "version": "2"})
    page = browser.get(f"/d/{lead.pk}/team/task/").content.decode()
    assert "Version 3" in page and "-Walk." in page and "A night in the hut." in page

    assert browser.delete(f"/api/dialogs/{lead.pk}/team/{side.pk}").status_code == 204
    assert results(lead) == ["No report. It was closed."]
