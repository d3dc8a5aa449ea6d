"""The driver in this process, against real rows: what a message leaves behind."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.db import connection
from django.db.models.signals import post_init

from dialogs.actions import expiry, messages
from dialogs.context.limits import judgement_of
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime.driver import drive
from dialogs.tasks import drive_dialog
from dominds.worker.seats import AT_WORK, seats
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import numbers
from tests.dialogs.factories import make_dialog, send
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def turns(dialog: Dialog) -> list[tuple[str, str, str]]:
    return [(turn.role, turn.status, turn.text) for turn in dialog.turns.order_by("position")]


def test_a_message_is_answered_with_usage_snapshot_and_events(script: Script) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    dialog = make_dialog()
    send(dialog, "Hi")
    assert turns(dialog) == [("user", "answered", "Hi"), ("assistant", "complete", "Hello.")]
    generation = Generation.objects.get(dialog=dialog)
    assert (generation.outcome, generation.prompt_tokens, generation.snapshot.level) == ("kept", 50, "healthy")
    assert (dialog.state, dialog.lease_owner, dialog.epoch) == ("idle", "", 1)
    seqs = numbers(dialog)
    assert seqs == list(range(1, dialog.last_event_seq + 1))


@pytest.mark.parametrize(
    ("prompt_tokens", "level"),
    [(50, "healthy"), (100_000, "healthy"), (100_001, "caution"), (115_200, "caution"), (115_201, "critical")],
)
def test_levels_of_a_128k_model(script: Script, prompt_tokens: int, level: str) -> None:
    script({"text": "ok", "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 1}})
    dialog = make_dialog()
    send(dialog, "Hi")
    assert Generation.objects.get(dialog=dialog).snapshot.level == level


def test_unreported_usage_is_unknown_and_never_zero(script: Script) -> None:
    script({"text": "ok", "usage": "none"})
    dialog = make_dialog()
    send(dialog, "Hi")
    snapshot = Generation.objects.get(dialog=dialog).snapshot
    assert (snapshot.level, snapshot.reason, snapshot.prompt_tokens) == ("unknown", "usage_unavailable", None)


def test_caution_guides_the_next_generation_and_stores_nothing_of_it(script: Script) -> None:
    high = {"usage": {"prompt_tokens": 110_000, "completion_tokens": 1}}
    script({"match": "Context guidance", "text": "guided", **high}, {"text": "plain", **high})
    dialog = make_dialog()
    for number in range(13):
        send(dialog, f"message {number}")
    answers = [turn.text for turn in dialog.turns.filter(role="assistant").order_by("position")]
    assert [index for index, text in enumerate(answers) if text == "guided"] == [1, 11]
    assert not Turn.objects.filter(text__contains="re-entry").exists()


def test_three_refusals_suspend_the_dialog(script: Script) -> None:
    script({"text": "no", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    dialog = make_dialog()
    send(dialog, "fill it")
    send(dialog, "and now?")
    assert dialog.state == "suspended"
    outcomes = list(dialog.generations.order_by("id").values_list("purpose", "outcome"))
    assert outcomes == [("reply", "kept"), *[("forced_clear", "discarded")] * 3]
    assert turns(dialog)[-1] == ("user", "suspended", "and now?")


def test_reports_about_shortened_requests_leave_the_level_red(script: Script) -> None:
    """A forced attempt without room for a package leaves messages out: its report is not the context's."""
    script(
        {"match": "Context guidance", "text": "no", "usage": {"prompt_tokens": 1_200, "completion_tokens": 1}},
        *(
            {"text": "yes " * 200, "usage": {"prompt_tokens": prompt, "completion_tokens": 200}}
            for prompt in (1_000, 1_300, 1_600, 1_900)
        ),
        context_length=2_048,
    )
    dialog = make_dialog()
    for text in ("fill it", "more", "more", "more", "and now?"):
        send(dialog, text)
    assert set(dialog.generations.filter(purpose="forced_clear").values_list("snapshot__prompt_tokens", flat=True)) == {
        1_200
    }
    assert (dialog.state, judgement_of(dialog).level, dialog.prompt_tokens) == ("suspended", "critical", 1_900)
    assert "Last reported prompt: 1,900 tokens." in dialog.questions.get().text


def test_a_forced_clear_answers_the_message_in_a_new_round(script: Script) -> None:
    clear = {"tool_calls": [{"name": "clear_mind", "arguments": {"reminder_content": "Goal: test"}}]}
    script(
        {"match": "Context guidance", **clear, "usage": {"prompt_tokens": 120_000, "completion_tokens": 9}},
        {"match": "Goal: test", "text": "fresh", "usage": {"prompt_tokens": 60, "completion_tokens": 1}},
        {"text": "full", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}},
    )
    dialog = make_dialog()
    send(dialog, "fill it")
    send(dialog, "and now?")
    assert (dialog.state, dialog.round_number) == ("idle", 2)
    assert turns(dialog)[-1] == ("assistant", "complete", "fresh")
    assert dialog.turns.get(text="and now?").status == "answered"


def test_who_is_asked_to_clear_its_mind_clears_once(script: Script) -> None:
    clear = {"tool_calls": [{"name": "clear_mind", "arguments": {"reminder_content": "Goal: test"}}]}
    script({"match": "Refused: your mind was cleared", "text": "Done."}, {"match": "Clear your mind", **clear})
    dialog = make_dialog()
    for _ in range(2):  # a later message may ask for it again
        send(dialog, "Clear your mind")
        assert turns(dialog)[-1] == ("assistant", "complete", "Done.")
    assert dialog.round_number == 3


def test_a_reminder_is_added_and_the_answer_follows(script: Script) -> None:
    script(
        {"tool_calls": [{"name": "add_reminder", "arguments": {"content": "keep this", "position": 0}}]},
        {"text": "done"},
    )
    dialog = make_dialog()
    send(dialog, "remember")
    assert [(turn[0], turn[2]) for turn in turns(dialog)][1:] == [
        ("assistant", ""),
        ("tool", f"Reminder {dialog.reminders.get().pk} added."),
        ("assistant", "done"),
    ]


@contextmanager
def at_read(number: int, act: Callable[[], object]) -> Iterator[None]:
    """Have something happen behind one of the block's reads of a dialog outside of transactions."""
    countdown = iter(range(number, 0, -1))

    def hear(**_: object) -> None:
        if not connection.in_atomic_block and next(countdown, 0) == 1:
            act()

    post_init.connect(hear, Dialog)
    try:
        yield
    finally:
        post_init.disconnect(hear, Dialog)


REMINDS = {"tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}]}


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_a_dialog_that_is_erased_between_two_reads_of_a_step_ends_the_run(script: Script, reads: int) -> None:
    script({"match": "Remember", **REMINDS}, {"text": "Remembered."})
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Remember x")
    with at_read(reads, lambda: expiry.erase_now(dialog.pk)):
        drive(dialog.pk)
    assert not Dialog.objects.filter(pk=dialog.pk).exists()


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_no_call_begins_after_a_stop_that_comes_while_it_is_prepared(script: Script, reads: int) -> None:
    script(REMINDS, {"text": "Never said."})
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Remember x")
    with at_read(reads, lambda: Dialog.objects.filter(pk=dialog.pk).update(stop_requested=True)):
        drive(dialog.pk)
    asked, answered, result = (turn[:2] for turn in turns(dialog))
    assert (asked, answered) == (("user", "stopped"), ("assistant", "complete"))
    # The thread that keeps the lease reads the flag four times a second, and may do so before the tool begins.
    assert result == ("tool", "ok") or (reads == 1 and result == ("tool", "error"))
    assert Generation.objects.filter(dialog=dialog).count() == 1


def test_ask_human_waits_and_goes_on_with_the_answer(script: Script) -> None:
    from dialogs.actions import questions

    script({"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}, {"text": "Thanks"})
    dialog = make_dialog()
    send(dialog, "choose")
    assert dialog.state == "waiting"
    question = dialog.questions.get()
    questions.answer(question.pk, dialog.owner, "The red one")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, turns(dialog)[-1][2]) == ("idle", "Thanks")


def test_half_a_surrogate_pair_in_an_answer_is_replaced_and_stored(script: Script) -> None:
    script({"text": "broken \ud83d here " * 20})
    dialog = make_dialog()
    send(dialog, "Hi")
    assert turns(dialog)[-1] == ("assistant", "complete", "broken ? here " * 20)


def test_a_drive_gives_its_seat_back_while_the_model_talks(script: Script) -> None:
    script({"text": "word " * 100, "chunk_delay_ms": 100})
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Hi")
    with ExitStack() as others:
        for _ in range(AT_WORK):
            others.enter_context(seats.take())
        thread = threading.Thread(target=drive_dialog, args=(str(dialog.pk),))
        thread.start()
        thread.join(0.3)
        assert not Generation.objects.filter(dialog=dialog).exists(), "it worked without a seat"
    eventually(lambda: Generation.objects.filter(dialog=dialog, outcome="running").exists() and seats.free == AT_WORK)
    messages.stop(dialog.pk)
    thread.join(20)
    assert not thread.is_alive()
    assert seats.free == AT_WORK
