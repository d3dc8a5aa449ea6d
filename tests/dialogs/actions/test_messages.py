"""What people ask of a dialog, and that each accepted message ends exactly once."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.functions import Now

from dialogs.actions import messages, questions, rewrite_requests
from dialogs.errors import Conflict, Invalid, RateLimited, TooLarge
from dialogs.models import Dialog, Turn
from dialogs.operations.sweeping import sweep
from dialogs.runtime import tool_runs
from dialogs.runtime.driver import drive, pending_work, step
from dialogs.store.lease import claim, keeper
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import numbers
from tests.dialogs.factories import AgentFactory, make_dialog
from tests.dialogs.store.test_lease import in_threads, refreshed, user_turns
from tests.dialogs.vanishing import call_and_vanish, take_and_vanish
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

ASK = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
SLOW = {"text": "one two three four five six seven eight nine ten " * 20, "chunk_delay_ms": 50}


class Driving:
    """``drive`` on a thread, as a worker runs it."""

    def __init__(self, dialog_id: UUID) -> None:
        self._thread = threading.Thread(target=self._run, args=(dialog_id,))
        self._thread.start()

    def _run(self, dialog_id: UUID) -> None:
        try:
            drive(dialog_id)
        finally:
            connection.close()

    def end(self, seconds: float = 30) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive()


@pytest.fixture
def dialog(script: Script) -> Dialog:
    return make_dialog()


def send(dialog: Dialog, *texts: str) -> Dialog:
    for text in texts:
        messages.post_message(dialog.pk, text)
    drive(dialog.pk)
    return refreshed(dialog)


def answers(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.turns.filter(role="assistant").order_by("position").values_list("text", "status"))


def conversation(dialog: Dialog) -> list[str]:
    placed = dialog.turns.filter(position__isnull=False).order_by("position")
    return [f"{turn.role}: {turn.text}" for turn in placed]


def suspend(script: Script, dialog: Dialog) -> Dialog:
    script({"text": "no", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    send(dialog, "fill it")
    return send(dialog, "and now?")


# -- accepting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "\ud800"])
def test_what_cannot_be_stored_is_refused(dialog: Dialog, text: str) -> None:
    with pytest.raises(Invalid):
        messages.post_message(dialog.pk, text)
    assert dialog.turns.count() == 0


def test_a_message_of_exactly_a_million_bytes_is_taken_and_one_more_is_not(dialog: Dialog) -> None:
    assert messages.post_message(dialog.pk, "ä" * 500_000).seq == 1
    with pytest.raises(TooLarge, match="1,000,001 bytes"):
        messages.post_message(dialog.pk, "ä" * 500_000 + "b")


def test_the_same_client_id_gets_the_same_answer_and_makes_one_turn(dialog: Dialog) -> None:
    first = messages.post_message(dialog.pk, "Hi", "id-1")
    assert messages.post_message(dialog.pk, "Hi", "id-1") == first
    drive(dialog.pk)
    assert messages.post_message(dialog.pk, "Hi", "id-1").seq == first.seq
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "answered")]
    assert dialog.generations.count() == 1


def test_a_client_id_with_another_text_is_refused(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi", "id-1")
    with pytest.raises(Conflict) as refused:
        messages.post_message(dialog.pk, "Ho", "id-1")
    assert refused.value.code == "client_message_id_reused"


def test_a_client_id_sent_many_times_at_once_makes_one_turn(dialog: Dialog) -> None:
    results = in_threads(8, lambda _: messages.post_message(dialog.pk, "Hi", "id-1").seq)
    assert results == [1] * 8
    assert dialog.turns.count() == 1


def test_messages_sent_at_once_are_all_answered_one_after_another(dialog: Dialog) -> None:
    accepted = in_threads(8, lambda number: messages.post_message(dialog.pk, f"message {number}", f"id-{number}").seq)
    assert sorted(accepted) == list(range(1, 9))
    drive(dialog.pk)
    in_order_of_acceptance = [text for text, _ in user_turns(dialog)]
    assert user_turns(dialog) == [(text, "answered") for text in in_order_of_acceptance]
    spoken = [line for text in in_order_of_acceptance for line in (f"user: {text}", "assistant: Hello.")]
    assert conversation(dialog) == spoken


def test_too_many_messages_a_minute_are_refused_and_leave_nothing(dialog: Dialog, settings: Any) -> None:
    settings.MESSAGES_PER_MINUTE = 2
    send(dialog, "one", "two")
    with pytest.raises(RateLimited, match="2 are allowed"):
        messages.post_message(dialog.pk, "three")
    assert len(user_turns(dialog)) == 2


def test_too_many_running_dialogs_are_refused(dialog: Dialog, settings: Any) -> None:
    settings.RUNNING_DIALOGS = 1
    messages.post_message(dialog.pk, "Hi")
    other = messages.create_dialog(dialog.owner, AgentFactory.create().pk)
    with pytest.raises(RateLimited, match="1 are allowed at once"):
        messages.post_message(other.pk, "Hi")
    messages.post_message(dialog.pk, "the one that runs may queue")


def test_an_agent_without_its_model_refuses_with_the_reason(script: Script) -> None:
    lost = make_dialog(model="nowhere")
    with pytest.raises(Conflict, match="nowhere") as refused:
        messages.post_message(lost.pk, "Hi")
    assert refused.value.code == "agent_unusable"


# -- the queue -----------------------------------------------------------------------------------------------------------


def test_a_message_during_an_answer_takes_its_turn_after_it(script: Script, dialog: Dialog) -> None:
    script({"match": "first", "text": "to the first", "delay_ms": 800}, {"text": "to the second"})
    messages.post_message(dialog.pk, "first")
    driving = Driving(dialog.pk)
    eventually(dialog.generations.exists)
    assert messages.post_message(dialog.pk, "second").state == "generating"
    assert refreshed(dialog).turns.get(text="second").status == "queued"
    driving.end()
    assert conversation(dialog) == [
        "user: first",
        "assistant: to the first",
        "user: second",
        "assistant: to the second",
    ]


def test_a_message_while_a_person_is_asked_waits_for_the_answer(script: Script, dialog: Dialog) -> None:
    script({"match": "choose", **ASK}, {"match": "The red one", "text": "Red it is"}, {"text": "Hello."})
    assert send(dialog, "choose").state == "waiting"
    assert messages.post_message(dialog.pk, "by the way").state == "waiting"
    drive(dialog.pk)
    assert user_turns(dialog)[-1] == ("by the way", "queued")
    questions.answer(dialog.questions.get().pk, dialog.owner, "The red one")
    drive(dialog.pk)
    assert conversation(dialog)[-4:] == [
        "tool: The red one",
        "assistant: Red it is",
        "user: by the way",
        "assistant: Hello.",
    ]


def test_a_queued_message_can_be_taken_back_once(script: Script, dialog: Dialog) -> None:
    script(ASK, {"text": "ok"})
    send(dialog, "choose")
    seq = messages.post_message(dialog.pk, "never mind").seq
    messages.remove_queued(dialog.pk, seq, dialog.owner)
    with pytest.raises(Conflict, match="is not waiting any more"):
        messages.remove_queued(dialog.pk, seq, dialog.owner)
    assert user_turns(dialog)[-1] == ("never mind", "superseded")


def test_nothing_is_accepted_while_suspended_and_the_queue_is_kept(script: Script, dialog: Dialog) -> None:
    script({"text": "no", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    send(dialog, "fill it")
    messages.post_message(dialog.pk, "and now?")
    messages.post_message(dialog.pk, "queued behind")
    drive(dialog.pk)
    assert user_turns(dialog)[1:] == [("and now?", "suspended"), ("queued behind", "queued")]
    for attempt in (messages.post_message, lambda pk, _: messages.retry(pk)):
        with pytest.raises(Conflict) as refused:
            attempt(dialog.pk, "hello?")
        assert refused.value.code == "dialog_suspended"
    before = dialog.generations.count()
    drive(dialog.pk)
    assert dialog.generations.count() == before


# -- stop ----------------------------------------------------------------------------------------------------------------


def test_stop_before_any_worker_came_ends_the_message(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    assert messages.stop(dialog.pk) == "idle"
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert dialog.generations.count() == 0


def test_stop_before_any_worker_came_leaves_the_next_message(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    messages.post_message(dialog.pk, "Ho")
    assert messages.stop(dialog.pk) == "queued"
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped"), ("Ho", "answered")]


def test_stop_before_the_first_token(script: Script, dialog: Dialog) -> None:
    script({"text": "late", "delay_ms": 20_000})
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    eventually(dialog.generations.exists)
    pressed = time.monotonic()
    messages.stop(dialog.pk)
    driving.end()
    assert time.monotonic() - pressed < 3
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "stopped")], [])
    assert (refreshed(dialog).state, refreshed(dialog).stop_requested) == ("idle", False)


def test_stop_in_the_middle_keeps_what_was_said_once(script: Script, dialog: Dialog) -> None:
    script(SLOW)
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    eventually(dialog.generations.exists)
    time.sleep(0.6)
    messages.stop(dialog.pk)
    driving.end()
    ((text, status),) = answers(dialog)
    assert status == "stopped"
    assert 0 < len(text) < len(SLOW["text"])  # type: ignore[arg-type]
    assert str(SLOW["text"]).startswith(text)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert dialog.generations.get().outcome == "stopped"


def test_stop_is_for_the_message_under_way_and_not_for_the_queue(script: Script, dialog: Dialog) -> None:
    script({"match": "first", **SLOW}, {"text": "second"})
    messages.post_message(dialog.pk, "the first")
    driving = Driving(dialog.pk)
    eventually(dialog.generations.exists)
    messages.post_message(dialog.pk, "the next")
    messages.stop(dialog.pk)
    driving.end()
    assert user_turns(dialog) == [("the first", "stopped"), ("the next", "answered")]
    assert answers(dialog)[-1] == ("second", "complete")


def test_stop_that_comes_too_late_stops_nothing_else(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "the first")
    messages.post_message(dialog.pk, "the next")
    with claim(dialog.pk) as lease:
        assert lease is not None
        keeper.remove(lease)  # which would see the flag within a quarter of a second
        work = pending_work(lease)
        assert work is not None
        messages.stop(dialog.pk)  # after the worker has looked, and its answer comes at once
        step(lease, work)
        while (work := pending_work(lease)) is not None:
            step(lease, work)
    assert user_turns(dialog) == [("the first", "answered"), ("the next", "answered")]


def test_stop_between_a_reply_and_its_tools_runs_none_of_them(script: Script, dialog: Dialog) -> None:
    script({"tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}]}, {"text": "done"})
    messages.post_message(dialog.pk, "Hi")
    with claim(dialog.pk) as lease:
        assert lease is not None
        step(lease, pending_work(lease))  # type: ignore[arg-type]
    messages.stop(dialog.pk)
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert dialog.reminders.count() == 0
    (result,) = dialog.turns.filter(role="tool")
    assert (result.status, result.text) == ("error", "Not run: a person pressed stop.")
    script({"text": "hello"})
    send(dialog, "and now?")
    assert (dialog.reminders.count(), answers(dialog)[-1][0]) == (0, "hello")


def test_a_result_is_stored_once_though_its_commit_is_repeated(script: Script, dialog: Dialog) -> None:
    """The answer to a commit may be lost with the connection; the tool must not take effect twice."""
    remind = {"name": "add_reminder", "arguments": {"content": "x"}}
    script({"tool_calls": [remind, {"name": "ask_human", "arguments": {"question": "Which?"}}]}, {"text": "done"})
    messages.post_message(dialog.pk, "Hi")
    with claim(dialog.pk) as lease:
        assert lease is not None
        step(lease, pending_work(lease))  # type: ignore[arg-type]
        asked = refreshed(dialog)
        work = tool_runs.pending(asked)
        assert work is not None
        tool_runs.run(lease, asked, work)
        tool_runs.run(lease, asked, work)
    assert dialog.reminders.count() == 1
    assert dialog.turns.filter(role="tool").count() == 1
    assert dialog.questions.count() == 1


def test_stop_ends_a_waiting_retry_and_frees_the_next_message(script: Script, dialog: Dialog) -> None:
    busy = {"kind": "rate_limit", "message": "Slow down.", "retry_after": 50}
    script({"error": busy})
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    eventually(lambda: refreshed(dialog).wake_at)
    messages.stop(dialog.pk)
    driving.end()
    assert user_turns(dialog) == [("Hi", "stopped")]
    script({"text": "Hello."})
    send(dialog, "Ho")
    assert user_turns(dialog)[-1] == ("Ho", "answered")


def test_stop_of_a_dialog_at_rest_does_nothing(dialog: Dialog) -> None:
    send(dialog, "Hi")
    assert messages.stop(dialog.pk) == "idle"
    assert send(dialog, "Ho").state == "idle"
    assert user_turns(dialog) == [("Hi", "answered"), ("Ho", "answered")]


def test_stop_when_the_worker_has_vanished_is_obeyed_by_the_next(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    call_and_vanish(dialog)
    messages.stop(dialog.pk)
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert [row.outcome for row in dialog.generations.all()] == ["crashed"]


def test_stop_in_a_forced_attempt_keeps_nothing_of_it(script: Script, dialog: Dialog) -> None:
    script({"text": "full", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    send(dialog, "fill it")
    script({**SLOW, "text": "SENTINEL " * 100})
    messages.post_message(dialog.pk, "and now?")
    driving = Driving(dialog.pk)
    eventually(lambda: dialog.generations.filter(purpose="forced_clear").exists())
    time.sleep(0.4)
    messages.stop(dialog.pk)
    driving.end()
    assert user_turns(dialog)[-1] == ("and now?", "stopped")
    assert not Turn.objects.filter(dialog=dialog, text__contains="SENTINEL").exists()


# -- retry and failure -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["auth", "refused"])
def test_an_error_that_will_not_pass_fails_the_message_with_its_reason(
    script: Script, dialog: Dialog, kind: str
) -> None:
    script({"error": {"kind": kind, "message": "No, says the model."}})
    results = send(dialog, "Hi")
    assert (results.state, results.failure) == ("failed", "No, says the model.")
    assert user_turns(dialog) == [("Hi", "failed")]
    assert dialog.generations.count() == 1


def test_an_error_that_passes_is_tried_again_in_the_same_message(script: Script, dialog: Dialog) -> None:
    script({"text": "SENTINEL", "error": {"kind": "network", "message": "Gone."}}, {"text": "back"})
    results = send(dialog, "Hi")
    assert (results.state, answers(dialog)) == ("idle", [("back", "complete")])
    assert list(dialog.generations.order_by("id").values_list("outcome", "attempt")) == [("failed", 1), ("kept", 2)]


def test_a_long_wait_for_the_provider_holds_no_worker(script: Script, dialog: Dialog) -> None:
    script(
        {"text": "lost", "error": {"kind": "rate_limit", "message": "Slow down.", "retry_after": 40}}, {"text": "ok"}
    )
    started = time.monotonic()
    waiting = send(dialog, "Hi")
    assert time.monotonic() - started < 10
    assert (waiting.state, waiting.lease_owner, waiting.crashes) == ("queued", "", 0)
    drive(dialog.pk)
    assert dialog.generations.count() == 1, "nobody drives it before its time"
    assert sweep() == 0
    Dialog.objects.filter(pk=dialog.pk).update(wake_at=Now(), active_at=Now() - timedelta(seconds=2))
    assert sweep() == 1
    drive(dialog.pk)
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "answered")], [("ok", "complete")])


def test_a_failed_message_is_answered_by_a_retry(script: Script, dialog: Dialog) -> None:
    script({"error": {"kind": "refused", "message": "No."}})
    send(dialog, "Hi")
    assert messages.retry(dialog.pk) == "queued"
    script({"text": "yes"})
    drive(dialog.pk)
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "answered")], [("yes", "complete")])
    assert refreshed(dialog).failure == ""


def test_retry_is_refused_when_there_is_nothing_to_retry(script: Script, dialog: Dialog) -> None:
    with pytest.raises(Conflict) as refused:
        messages.retry(dialog.pk)
    assert refused.value.code == "nothing_to_retry"
    send(dialog, "Hi")
    with pytest.raises(Conflict):
        messages.retry(dialog.pk)
    messages.post_message(dialog.pk, "Ho")
    with pytest.raises(Conflict) as refused:
        messages.retry(dialog.pk)
    assert refused.value.code == "dialog_busy"


def test_a_failed_message_does_not_hold_up_the_next(script: Script, dialog: Dialog) -> None:
    script({"match": "Hi$", "error": {"kind": "refused", "message": "No."}}, {"text": "yes"})
    send(dialog, "Hi", "Ho")
    assert user_turns(dialog) == [("Hi", "failed"), ("Ho", "answered")]


def test_a_message_from_before_a_clear_is_retried_in_the_new_round(script: Script, dialog: Dialog) -> None:
    script({"error": {"kind": "refused", "message": "No."}}, {"match": "Go on", "text": "yes"})
    send(dialog, "Hi")
    rewrite_requests.clear(dialog.pk, "Go on", dialog.owner)
    drive(dialog.pk)
    assert refreshed(dialog).round_number == 2
    messages.retry(dialog.pk)
    drive(dialog.pk)
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "answered")], [("yes", "complete")])


# -- close ---------------------------------------------------------------------------------------------------------------


def test_close_fences_out_the_worker_that_is_generating(script: Script, dialog: Dialog) -> None:
    script({"text": "SENTINEL", "delay_ms": 1_000})
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    eventually(dialog.generations.exists)
    messages.post_message(dialog.pk, "queued")
    assert messages.close(dialog.pk, dialog.owner) == "closed"
    driving.end()
    assert user_turns(dialog) == [("Hi", "superseded"), ("queued", "superseded")]
    assert answers(dialog) == []
    assert dialog.generations.get().outcome == "stopped"
    results = refreshed(dialog)
    assert (results.state, results.lease_owner) == ("closed", "")


def test_a_closed_dialog_takes_nothing_more(dialog: Dialog) -> None:
    messages.close(dialog.pk, dialog.owner)
    for refused in (
        lambda: messages.post_message(dialog.pk, "Hi"),
        lambda: messages.retry(dialog.pk),
        lambda: rewrite_requests.clear(dialog.pk, "x", dialog.owner),
    ):
        with pytest.raises(Conflict) as refusal:
            refused()
        assert refusal.value.code == "dialog_closed"
    assert messages.close(dialog.pk, dialog.owner) == "closed"
    drive(dialog.pk)
    assert (dialog.turns.count(), refreshed(dialog).epoch) == (0, 1)


def test_close_cancels_the_open_question(script: Script, dialog: Dialog) -> None:
    script(ASK)
    send(dialog, "choose")
    messages.close(dialog.pk, dialog.owner)
    assert dialog.questions.get().state == "cancelled"
    assert user_turns(dialog) == [("choose", "superseded")]


def test_close_ends_a_suspension(script: Script, dialog: Dialog) -> None:
    suspend(script, dialog)
    messages.close(dialog.pk, dialog.owner)
    assert user_turns(dialog)[-1] == ("and now?", "superseded")


# -- two people at once ----------------------------------------------------------------------------------------------------


def test_of_two_answers_to_a_question_one_counts(script: Script, dialog: Dialog) -> None:
    script(ASK, {"text": "thanks"})
    send(dialog, "choose")
    question = dialog.questions.get()
    results = in_threads(2, lambda number: questions.answer(question.pk, dialog.owner, f"answer {number}"))
    codes = [answer.code for answer in results if isinstance(answer, Conflict)]
    assert codes == ["already_resolved"]
    drive(dialog.pk)
    assert dialog.turns.filter(role="tool").count() == 1
    assert user_turns(dialog) == [("choose", "answered")]


@pytest.mark.parametrize(
    "other",
    [
        lambda dialog: messages.stop(dialog.pk),
        lambda dialog: messages.close(dialog.pk, dialog.owner),
        lambda dialog: messages.post_message(dialog.pk, "meanwhile"),
        lambda dialog: rewrite_requests.clear(dialog.pk, "start over", dialog.owner),
    ],
    ids=["stop", "close", "post", "clear"],
)
def test_whatever_a_person_does_beside_a_worker_each_message_ends_once(
    script: Script, dialog: Dialog, other: Callable[[Dialog], Any]
) -> None:
    for _ in range(3):
        script({"text": "Hello."})
        mine = messages.create_dialog(dialog.owner, dialog.agent_id)
        messages.post_message(mine.pk, "Hi")

        def act(number: int, mine: Dialog = mine) -> None:
            (drive(mine.pk) if number else other(mine))

        in_threads(2, act)
        drive(mine.pk)
        assert {status for _, status in user_turns(mine)} <= {"answered", "stopped", "superseded"}
        assert refreshed(mine).state in ("idle", "closed")
        seqs = numbers(mine)
        assert seqs == list(range(1, refreshed(mine).last_event_seq + 1))


def test_a_worker_that_vanished_between_two_messages_loses_neither(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    take_and_vanish(dialog)
    messages.post_message(dialog.pk, "Ho")
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "answered"), ("Ho", "answered")]
