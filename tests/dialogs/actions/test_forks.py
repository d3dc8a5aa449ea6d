"""Branches of a dialog: what a fork takes along, what it leaves behind, and that its origin stays as it was."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dialogs.actions import messages, reminders, rewrite_requests
from dialogs.actions.attachments import check_files, text_files, text_typed
from dialogs.actions.forks import Branch, edit, fork, regenerate
from dialogs.context.view import view_of
from dialogs.errors import Conflict, Invalid, NotFound, Refusal
from dialogs.models import Artifact, Dialog, Event, Generation, RecallChoice, Turn
from dialogs.runtime.driver import drive
from dialogs.store import copying, events, lease
from dialogs.tools.archive import read_artifact
from dialogs.tools.tool import Invocation
from dominds.budgets import FORK_ROWS
from remediation.models import RemediationRun, RemovedUnit
from tests.dialogs.browsing import HTMX, asked_dialog, browser_of, suspended_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, send
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "The importer reads the file data/orders-{n}.csv and writes table orders_{n}. It never touches invoices. " * 12


def at(dialog: Dialog, seq: int, request_id: str = "") -> Branch:
    return Branch(dialog.pk, seq, dialog.owner, request_id)


def turns_of(dialog: Dialog) -> list[tuple[int, str, str, str]]:
    return list(dialog.turns.order_by("position").values_list("seq", "role", "status", "text"))


def seen(dialog: Dialog) -> list[str]:
    return [message.text for message in view_of(Dialog.objects.get(pk=dialog.pk)).messages]


def rows_of(dialog: Dialog) -> list[Any]:
    """Everything of the dialog that a branch must not touch."""
    kinds = (dialog.turns, dialog.rounds, dialog.generations, dialog.reminders, dialog.remediations, dialog.events)
    return [list(rows.order_by("pk").values()) for rows in kinds]


@pytest.fixture
def dialog(script: Script) -> Dialog:
    """Three messages, each answered by "Yes."."""
    script({"text": "Yes.", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    dialog = make_dialog()
    for text in ("one", "two", "three"):
        send(dialog, text)
    dialog.refresh_from_db()
    return dialog


def test_a_fork_copies_up_to_the_turn_and_goes_on(dialog: Dialog) -> None:
    before = rows_of(dialog)
    made = fork(at(dialog, 4))
    assert turns_of(made) == turns_of(dialog)[:4]
    assert (made.forked_from_id, made.own_from, made.title) == (dialog.pk, 5, "one (fork)")
    send(made, "otherwise")
    assert seen(made) == ["one", "Yes.", "two", "Yes.", "otherwise", "Yes."]
    assert rows_of(dialog) == before
    assert made.generations.count() == 1, "a copied answer is no call of the fork"
    made.refresh_from_db()
    assert made.prompt_tokens == 50 and made.state == "idle"
    turns = [
        event.data["turn"]
        for row in Event.objects.filter(dialog=made)
        for event in events.events_in(row)
        if event.type == "turn"
    ]
    assert min(turns) == 5, "what was copied is no event"


def test_a_fork_at_a_message_offers_to_answer_it(dialog: Dialog) -> None:
    made = fork(at(dialog, 3))
    assert turns_of(made)[-1] == (3, "user", "stopped", "two")
    messages.retry(made.pk)
    drive(made.pk)
    assert seen(made) == ["one", "Yes.", "two", "Yes."]


def test_another_answer_replaces_its_dialog_in_the_list(dialog: Dialog, script: Script) -> None:
    script({"text": "No."})
    Dialog.objects.filter(pk=dialog.pk).update(pinned_at=dialog.created_at)
    made = regenerate(at(dialog, 6))
    stored = Dialog.objects.get(pk=made.pk)
    assert (stored.state, stored.pinned_at) == ("queued", dialog.created_at)
    drive(made.pk)
    assert seen(made) == ["one", "Yes.", "two", "Yes.", "three", "No."]
    assert turns_of(made)[4][2] == "answered"
    dialog.refresh_from_db()
    assert dialog.archived_at is not None and dialog.fork_count == 1
    assert seen(dialog)[-1] == "Yes."


def test_another_answer_by_another_model_stays_with_it(dialog: Dialog, script: Script) -> None:
    dialog.calibration_fit = [1.0]
    dialog.save(update_fields=["calibration_fit"])
    made = regenerate(at(dialog, 6), "demo", "echo")
    made.refresh_from_db()
    assert (made.provider_id, made.model_id, made.calibration_fit) == ("demo", "echo", None)
    drive(made.pk)
    assert made.generations.get().model == "echo"
    with pytest.raises(Conflict, match="nosuch"):
        regenerate(at(dialog, 6), "test", "nosuch")
    assert Dialog.objects.count() == 2


def test_another_wording_replaces_the_message_and_what_followed(dialog: Dialog) -> None:
    made = edit(at(dialog, 3), "two, but different")
    drive(made.pk)
    assert seen(made) == ["one", "Yes.", "two, but different", "Yes."]
    first = edit(at(dialog, 1), "Begin otherwise")
    drive(first.pk)
    assert seen(first) == ["Begin otherwise", "Yes."]
    assert turns_of(first)[0][:2] == (1, "user")
    assert (Dialog.objects.get(pk=first.pk).title, made.title) == ("Begin otherwise", "one")


def test_another_wording_keeps_the_files(dialog: Dialog, script: Script) -> None:
    script({"text": "Seen."})
    files = check_files([("notes.txt", b"tea at four"), ("plan.png", picture())])
    messages.post_message(dialog.pk, "Look", attached=files)
    drive(dialog.pk)
    message = dialog.turns.filter(role="user").latest("seq")
    made = edit(at(dialog, message.seq), "Look closely")
    sent = made.turns.filter(role="user").latest("seq")
    assert text_typed(sent.text, sent.attachments) == "Look closely"
    assert text_files(sent.text, sent.attachments) == [("notes.txt", "tea at four")]
    assert sent.attachments == message.attachments
    menu = browser_of(dialog.owner).get(f"/d/{dialog.pk}/turn/{message.seq}/actions/", headers=HTMX).content.decode()
    assert ">Look</textarea>" in menu


def test_branches_at_one_place_have_one_origin(dialog: Dialog) -> None:
    second = edit(at(dialog, 3), "two again")
    drive(second.pk)
    third = edit(at(second, second.turns.get(text="two again").seq), "two once more")
    earlier = edit(at(second, 1), "one again")
    own = fork(at(second, second.turns.latest("seq").seq))
    assert third.forked_from_id == dialog.pk and third.own_from == second.own_from == 3
    assert earlier.forked_from_id == dialog.pk and earlier.own_from == 1
    assert own.forked_from_id == second.pk and own.own_from == 5
    dialog.refresh_from_db()
    assert dialog.fork_count == 3 and Dialog.objects.get(pk=second.pk).fork_count == 1


def test_a_repeated_request_makes_one_dialog(dialog: Dialog) -> None:
    ways: list[Callable[[], Dialog]] = [
        lambda: fork(at(dialog, 6, "once")),
        lambda: regenerate(at(dialog, 6, "once")),
        lambda: edit(at(dialog, 5, "once"), "three again"),
    ]
    made = [{way().pk for _ in range(2)} for way in ways]
    assert all(len(ids) == 1 for ids in made) and Dialog.objects.count() == 4
    assert Dialog.objects.get(pk=dialog.pk).fork_count == 3


def test_rewrites_hold_in_a_branch_and_are_undone_there_alone(script: Script) -> None:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    dialog = make_dialog(context_policy="breaking", context_limit=5_000)
    while not RemediationRun.objects.filter(dialog=dialog).exists():
        send(dialog, LONG.format(n=dialog.turns.count()))
    newest = dialog.turns.latest("seq")
    made = fork(at(dialog, newest.seq))
    run = RemediationRun.objects.get(dialog=made)
    kept = RemediationRun.objects.get(dialog=dialog)
    assert seen(made) == seen(dialog)
    assert _texts(run) == _texts(kept) != []
    assert RemovedUnit.objects.filter(dialog=made).count() == run.units.count()
    rewrite_requests.undo(run.pk, made.owner)
    assert seen(made) == [turn.text for turn in made.turns.exclude(role="notice").order_by("position")]
    assert seen(made) != seen(dialog), "the origin's rewrite stands"
    assert RemediationRun.objects.counted().get() == kept, "the copy is no rewrite of its own"
    before = fork(at(dialog, 2))
    assert not RemediationRun.objects.filter(dialog=before).exists() and len(seen(before)) == 2


def _texts(run: RemediationRun) -> list[str]:
    return list(run.units.order_by("pk").values_list("text", flat=True))


def test_rounds_reminders_and_pins_come_along(dialog: Dialog) -> None:
    rewrite_requests.clear(dialog.pk, "Go on from here.", dialog.owner)
    drive(dialog.pk)
    send(dialog, "four")
    reminders.add(dialog.pk, "Mind the gap")
    RecallChoice.objects.create(dialog=dialog, seq=1, choice="pinned")
    made = fork(at(dialog, dialog.turns.latest("seq").seq))
    assert made.round_number == 2 and made.rounds.get(number=2).package == "Go on from here."
    assert seen(made) == seen(dialog) and "Go on from here." in seen(made)[0]
    assert made.reminders.get().text == "Mind the gap" and made.recall_choices.get().seq == 1
    older = fork(at(dialog, 2))
    assert older.round_number == 1 and older.rounds.count() == 1


def test_a_fork_amid_tool_calls_runs_none_again(script: Script) -> None:
    calls = [{"name": "add_reminder", "arguments": {"content": text}} for text in ("milk", "bread")]
    script({"tool_calls": calls}, {"text": "Noted."})
    dialog = make_dialog()
    send(dialog, "Note two things")
    assert [role for _, role, _, _ in turns_of(dialog)] == ["user", "assistant", "tool", "tool", "assistant"]
    script({"text": "Going on."})
    for seq in (2, 3, 4):
        made = fork(at(dialog, seq))
        assert turns_of(made) == turns_of(dialog)[:4]
        send(made, "Go on")
        assert made.reminders.count() == 2, "as copied: none was added once more"
    assert turns_of(fork(at(dialog, 5))) == turns_of(dialog)


def test_a_waiting_dialog_is_forked_before_its_open_call(script: Script) -> None:
    dialog, _ = asked_dialog(script)
    with pytest.raises(Conflict, match="waits for its result"):
        fork(at(dialog, 2))
    made = fork(at(dialog, 1))
    assert (made.state, turns_of(made)) == ("idle", [(1, "user", "stopped", "Import it")])
    suspended, _ = suspended_dialog(script)
    assert fork(at(suspended, 3)).state == "idle"
    assert Dialog.objects.get(pk=suspended.pk).state == "suspended"


def test_while_something_is_generated_nothing_branches_off(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "four")
    messages.post_message(dialog.pk, "five")
    theirs = replace(at(dialog, 1), by=UserFactory.create())  # who would take other people's messages along
    ways = (partial(fork, at(dialog, 2)), partial(regenerate, at(dialog, 2)), partial(edit, theirs, "Else"))
    for way in ways:
        with pytest.raises(Conflict) as refused:
            way()
        assert refused.value.code == "dialog_busy"
    assert Dialog.objects.count() == 1


@pytest.mark.parametrize("is_at_work", [False, True])
def test_another_wording_stops_the_answer_under_way(dialog: Dialog, is_at_work: bool) -> None:
    messages.post_message(dialog.pk, "four")
    sent, before = dialog.turns.latest("seq"), turns_of(dialog)[:-1]
    with lease.claim(dialog.pk) if is_at_work else nullcontext():
        made = edit(at(dialog, sent.seq), "Four, please")
        dialog.refresh_from_db()
        assert (dialog.state, dialog.stop_requested) == (("generating", True) if is_at_work else ("idle", False))
        assert dialog.archived_at is not None
    assert turns_of(made)[:-1] == before
    newest = made.turns.latest("seq")
    assert (newest.text, newest.status) == ("Four, please", "answering")


def test_messages_that_wait_come_along_behind_another_wording(dialog: Dialog) -> None:
    """The edit was refused, and the way on was to take each of them back."""
    messages.post_message(dialog.pk, "four")
    messages.post_message(dialog.pk, "five", author=dialog.owner)
    messages.post_message(dialog.pk, "six", attached=check_files([("a.png", picture())]))
    made = edit(at(dialog, 3, "once"), "Two, please")
    assert edit(at(dialog, 3, "once"), "Two, please") == made, "sent twice"
    assert list(dialog.turns.order_by("seq").values_list("text", "status"))[-3:] == [
        ("four", "stopped"),
        ("five", "superseded"),
        ("six", "superseded"),
    ]
    assert Dialog.objects.get(pk=dialog.pk).state == "idle"
    drive(made.pk)
    said = made.turns.filter(role="user", seq__gt=2).order_by("position")
    assert list(said.values_list("text", "status")) == [
        ("Two, please", "answered"),
        ("five", "answered"),
        ("six", "answered"),
    ]
    five, six = said[1:]
    assert five.author == dialog.owner and [file["name"] for file in six.attachments or ()] == ["a.png"]
    page = browser_of(dialog.owner).get(f"/d/{made.pk}/").content.decode()
    assert "The 2 messages that waited came along, and are answered after this one." in page
    assert "are answered after this one" not in str(seen(made))


def test_what_cannot_be_branched_is_refused_with_the_reason(dialog: Dialog) -> None:
    refusals: list[tuple[type[Refusal], Callable[[], object]]] = [
        (NotFound, lambda: fork(at(dialog, 99))),
        (Conflict, lambda: edit(at(dialog, 2), "An answer")),
        (Invalid, lambda: edit(at(dialog, 1), " ")),
        (Invalid, lambda: edit(at(dialog, 1), "a\x00b")),
    ]
    for kind, way in refusals:
        with pytest.raises(kind):
            way()
    assert Dialog.objects.count() == 1


def test_who_forks_owns_the_fork(dialog: Dialog) -> None:
    colleague = UserFactory.create()
    made = regenerate(Branch(dialog.pk, 6, colleague))
    assert made.owner == colleague
    dialog.refresh_from_db()
    assert dialog.archived_at is None, "nothing vanishes from a list by the act of another"


def test_a_fork_reads_the_large_results_of_its_copied_turns(dialog: Dialog) -> None:
    kept = Artifact.objects.create(dialog=dialog, tool_call_id="call-1", text="all of it")
    Turn.objects.filter(dialog=dialog, seq=2).update(role="tool", tool_call_id="call-1")
    first, second = fork(at(dialog, 1)), fork(at(dialog, 2))

    def read(reader: Dialog) -> str:
        return read_artifact(Invocation(reader.pk, "x", {"id": kept.pk})).text

    assert read(second) == "all of it" and "no artifact" in read(first)
    assert Generation.objects.filter(dialog=second).count() == 0


def test_a_fork_of_too_many_rows_is_refused(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "FORK_ROWS", replace(FORK_ROWS, most=4))
    assert fork(at(dialog, 4))
    with pytest.raises(Conflict, match=r"more than 4 turns and archived messages\. DOMINDS_FORK_ROWS sets this limit"):
        fork(at(dialog, 5))
    assert Dialog.objects.count() == 2
