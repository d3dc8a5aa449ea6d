"""What people ask of a dialog, and that each accepted message ends exactly once."""

from collections.abc import Callable
from typing import Any

import pytest

from dialogs.actions import messages, questions, rewrite_requests
from dialogs.errors import Conflict, Invalid, RateLimited, TooLarge
from dialogs.models import Dialog
from dialogs.runtime import tool_runs
from dialogs.runtime.driver import drive, pending_work, step
from dialogs.store.lease import claim
from tests.dialogs.actions.driving import ASK, Driving, answers, conversation, in_threads, refreshed, send, user_turns
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import numbers
from tests.dialogs.factories import AgentFactory, make_dialog
from tests.dialogs.vanishing import take_and_vanish
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def suspend(script: Script, dialog: Dialog) -> Dialog:
    script({"text": "no", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    send(dialog, "fill it")
    return send(dialog, "and now?")


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "\ud800"])
def test_what_cannot_be_stored_is_refused(dialog: Dialog, text: str) -> None:
    with pytest.raises(Invalid):
        messages.post_message(dialog.pk, text)
    assert dialog.turns.count() == 0


def test_a_message_may_have_exactly_a_million_bytes(dialog: Dialog) -> None:
    assert messages.post_message(dialog.pk, "ä" * 500_000).seq == 1
    with pytest.raises(TooLarge, match="1,000,001 bytes"):
        messages.post_message(dialog.pk, "ä" * 500_000 + "b")


def test_a_repeated_client_id_makes_one_turn(dialog: Dialog) -> None:
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


def test_a_result_is_stored_once_though_its_commit_is_repeated(script: Script, dialog: Dialog) -> None:
    """The answer to a commit may be lost with the connection; the tool must not take effect twice."""
    remind = {"name": "add_reminder", "arguments": {"content": "x"}}
    script({"tool_calls": [remind, {"name": "ask_human", "arguments": {"question": "Which?"}}]}, {"text": "done"})
    messages.post_message(dialog.pk, "Hi")
    with claim(dialog.pk) as lease:
        assert lease is not None
        step(lease, pending_work(lease))  # type: ignore[arg-type]
        asked = refreshed(dialog)
        work = tool_runs.pending_calls(asked)
        assert work is not None
        tool_runs.run(lease, asked, work)
        tool_runs.run(lease, asked, work)
    assert dialog.reminders.count() == 1
    assert dialog.turns.filter(role="tool").count() == 1
    assert dialog.questions.count() == 1


def test_close_fences_out_the_worker_that_is_generating(script: Script, dialog: Dialog) -> None:
    script({"text": "SENTINEL", "delay_ms": 20_000})
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
