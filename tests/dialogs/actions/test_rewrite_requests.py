"""Rewrites against real rows: each policy keeps a dialog under its limit, nothing is lost, and an undo is exact."""

from typing import Any

import pytest

from dialogs.actions import rewrite_requests
from dialogs.context.view import view_of
from dialogs.errors import Conflict
from dialogs.models import Dialog, Turn
from dialogs.queries import context_report
from dialogs.runtime.driver import drive
from remediation.models import ContextEvent, RemediationRun, RemovedUnit
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import make_dialog, send, talk

pytestmark = pytest.mark.django_db(transaction=True)


def seen(dialog: Dialog) -> list[Any]:
    return [message for unit in view_of(dialog).units for message in unit.messages]


def test_autocompaction_compacts_before_the_request_and_says_so(script: Script) -> None:
    script({"text": "Understood. " * 40, "usage": "estimate"}, context_length=8_000, kind="lmstudio")
    dialog = make_dialog()
    talk(dialog, 14)
    runs = RemediationRun.objects.filter(dialog=dialog)
    assert runs and all(run.policy == "autocompaction" and run.est_after < run.est_before for run in runs)
    notices = list(dialog.turns.filter(role=Turn.Role.NOTICE).values_list("text", flat=True))
    assert notices[:2] == ["Compacting conversation history...", "Context compacted, continuing..."]
    assert dialog.state == "idle"
    assert all(turn.status == "answered" for turn in dialog.turns.filter(role="user"))
    assert RemovedUnit.objects.filter(dialog=dialog).exists()


def test_breaking_keeps_a_dialog_under_its_budget(script: Script) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    dialog = make_dialog(context_policy="breaking", context_limit=5_000)
    talk(dialog, 16)
    runs = RemediationRun.objects.filter(dialog=dialog, policy="breaking")
    assert runs and all(run.est_after <= 5_000 for run in runs)
    shown = event_data(dialog, "contextBreakingUpdate")
    assert shown[0]["phase"] == "detection"
    told = [data["est_tokens"] for data in shown if data["phase"] == "success"]
    assert told == [run.est_after for run in runs.order_by("pk") if not run.recovered], "as the transcript tells it"
    assert ContextEvent.objects.filter(dialog=dialog, code="CONTEXT_WARNING").exists()


def test_retention_prunes_and_tells_how_much(script: Script) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"}, context_length=6_000, optimal_max_tokens=5_900)
    dialog = make_dialog(context_policy="retention")
    talk(dialog, 16)
    run = RemediationRun.objects.filter(dialog=dialog).latest("id")
    assert run.policy == "retention"
    pruned = event_data(dialog, "context:pruned")[-1]
    assert pruned["original"] - pruned["final"] == pruned["tokenReduction"] > 0


def test_undoing_two_nested_rewrites_restores_the_exact_view(script: Script) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    dialog = make_dialog()
    talk(dialog, 10)
    before = seen(dialog)
    for kind in ("prune", "break"):
        rewrite_requests.request(dialog.pk, "fresh_start" if kind == "prune" else kind, dialog.owner)
        drive(dialog.pk)
    dialog.refresh_from_db()
    runs = list(RemediationRun.objects.filter(dialog=dialog).order_by("-id"))
    assert runs and seen(dialog) != before
    for run in runs:
        rewrite_requests.undo(run.pk, dialog.owner)
    dialog.refresh_from_db()
    assert seen(dialog) == before
    assert dialog.report == "awaiting"


@pytest.mark.parametrize("rewritten", [False, True], ids=["as said", "rewritten"])
def test_an_undone_clear_is_seen_as_if_it_had_not_been(script: Script, rewritten: bool) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    dialog = make_dialog()
    talk(dialog, 6)
    if rewritten:
        rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
        drive(dialog.pk)
    talk(dialog, 1)
    before = seen(dialog)
    rewrite_requests.clear(dialog.pk, "Goal: go on", dialog.owner)
    drive(dialog.pk)
    talk(dialog, 1)
    cleared = seen(dialog)
    run = rewrite_requests.undo_clear(dialog.pk, dialog.owner, context_report.next_size)
    dialog.refresh_from_db()
    assert seen(dialog) == [*before, *cleared[1:]]
    assert run.est_after > run.est_before > 0
    talk(dialog, 1)
    rewrite_requests.undo(run.pk, dialog.owner)
    assert seen(dialog)[: len(cleared)] == cleared and len(seen(dialog)) == len(cleared) + 2
    with pytest.raises(Conflict):
        rewrite_requests.undo_clear(dialog.pk, dialog.owner, context_report.next_size)


def test_what_came_after_a_clear_is_undone_before_it(script: Script) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    dialog = make_dialog()
    rewrite_requests.clear(dialog.pk, "Goal: go on", dialog.owner)
    drive(dialog.pk)
    talk(dialog, 6)
    rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
    drive(dialog.pk)
    with pytest.raises(Conflict, match="Undo later rewrites"):
        rewrite_requests.undo_clear(dialog.pk, dialog.owner, context_report.next_size)


def test_a_rewrite_by_hand_on_an_idle_dialog_generates_nothing(script: Script) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    dialog = make_dialog()
    talk(dialog, 6)
    replies = dialog.generations.filter(purpose="reply").count()
    rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.generations.filter(purpose="reply").count()) == ("idle", replies)
    assert RemediationRun.objects.get(dialog=dialog).policy == "fresh_start"


def test_a_clear_by_hand_starts_a_round_and_generates_nothing(script: Script) -> None:
    dialog = make_dialog()
    send(dialog, "Hi")
    rewrite_requests.clear(dialog.pk, "Goal: go on", dialog.owner)
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.round_number, dialog.state, dialog.generations.count()) == (2, "idle", 1)
    assert "Goal: go on" in seen(dialog)[0].text


def test_an_answer_that_fills_the_window_goes_on_after_compaction(script: Script) -> None:
    script(
        {"match": "Go on exactly", "text": " And that is the end."},
        {"match": "write a book", "text": "word " * 6_000, "usage": "estimate"},
        {"text": "ok " * 300, "usage": "estimate"},
        context_length=8_000,
        kind="lmstudio",
    )
    dialog = make_dialog()
    talk(dialog, 5)
    send(dialog, "write a book")
    statuses = list(dialog.turns.filter(role="assistant").order_by("position").values_list("status", flat=True))
    assert statuses[-2:] == ["interrupted", "complete"]
    assert dialog.turns.get(text="write a book").status == "answered"


def test_another_provider_is_untouched_at_the_same_size(script: Script) -> None:
    script({"text": "Understood. " * 40, "usage": "estimate"}, context_length=8_000, critical_max_tokens=80_000)
    dialog = make_dialog()
    talk(dialog, 14)
    assert not RemediationRun.objects.filter(dialog=dialog).exists()
    assert len(seen(dialog)) == 28
