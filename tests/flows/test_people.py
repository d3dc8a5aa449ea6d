"""Asking people, and what the agent keeps in mind by itself."""

import threading

import pytest
from django.db import connection

from dialogs.actions import messages, questions, reminders
from dialogs.actions.questions import CANCELLED
from dialogs.errors import Conflict
from dialogs.models import Dialog
from tests.dialogs.factories import make_operator
from tests.doubles.brains import Call, Reply, Scripted
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import Serve, dialog_with, go_on, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(serve: Serve) -> LocalDouble:
    return serve(context_length=128_000)


def ask(question: str = "Which colour?") -> Call:
    return Call("ask_human", {"question": question})


def remind(text: str) -> Call:
    return Call("add_reminder", {"content": text})


def waiting(server: LocalDouble, *calls: Call) -> Dialog:
    server.brain = Scripted(Reply(calls=calls), Reply("Thank you."))
    dialog = dialog_with(server)
    say(dialog, "choose")
    assert dialog.state == "waiting"
    return dialog


def test_calls_beside_a_question_run(server: LocalDouble) -> None:
    dialog = waiting(server, remind("before"), ask(), remind("after"))
    assert [row.text for row in dialog.reminders.all()] == ["before"]
    questions.answer(dialog.questions.get().pk, dialog.owner, "Red")
    go_on(dialog)
    assert [row.text for row in dialog.reminders.all()] == ["before", "after"]
    results = [message for message in server.bodies[-1]["messages"] if message["role"] == "tool"]
    assert [message["content"].split()[0] for message in results] == ["Reminder", "Red", "Reminder"]
    assert (dialog.state, dialog.turns.get(text="choose").status, server.refusals) == ("idle", "answered", [])


def test_two_questions_of_one_answer_are_asked_one_after_the_other(server: LocalDouble) -> None:
    dialog = waiting(server, ask("First?"), ask("Second?"))
    questions.answer(dialog.questions.get(state="open").pk, dialog.owner, "one")
    go_on(dialog)
    assert (dialog.state, dialog.questions.get(state="open").text) == ("waiting", "Second?")
    questions.answer(dialog.questions.get(state="open").pk, dialog.owner, "two")
    go_on(dialog)
    assert (dialog.state, server.refusals) == ("idle", [])


def test_a_cancelled_question_is_told_and_the_run_goes_on(server: LocalDouble) -> None:
    dialog = waiting(server, ask())
    question = questions.cancel(dialog.questions.get().pk, dialog.owner)
    go_on(dialog)
    assert (question.state, dialog.state) == ("cancelled", "idle")
    assert server.bodies[-1]["messages"][-1]["content"] == CANCELLED


def test_a_second_answer_hears_who_was_first_and_when(server: LocalDouble) -> None:
    dialog = waiting(server, ask())
    operator = make_operator()
    question = questions.answer(dialog.questions.get().pk, operator, "Red")
    for late in (questions.answer, lambda pk, user, _: questions.cancel(pk, user)):
        with pytest.raises(Conflict) as second:
            late(question.pk, dialog.owner, "Blue")
        assert second.value.code == "already_resolved"
        assert (
            operator.get_username() in second.value.message and f"{question.resolved_at:%H:%M}" in second.value.message
        )
    go_on(dialog)
    assert dialog.turns.get(role="tool").text == "Red"


def test_of_two_answers_at_the_same_moment_one_counts(server: LocalDouble) -> None:
    dialog = waiting(server, ask())
    question, outcomes = dialog.questions.get(), []

    def answer(text: str) -> None:
        try:
            outcomes.append(questions.answer(question.pk, dialog.owner, text).answer)
        except Conflict as conflict:
            outcomes.append(conflict.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=answer, args=(text,)) for text in ("Red", "Blue")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "already_resolved" in outcomes and len({"Red", "Blue"} & set(outcomes)) == 1
    assert dialog.turns.filter(role="tool").count() == 1


def test_a_message_sent_during_a_question_waits_its_turn(server: LocalDouble) -> None:
    dialog = waiting(server, ask())
    accepted = messages.post_message(dialog.pk, "also this")
    assert accepted.state == "waiting" and len(server.bodies) == 1
    questions.answer(dialog.questions.get().pk, dialog.owner, "Red")
    go_on(dialog)
    users = dialog.turns.filter(role="user").order_by("position").values_list("text", "status")
    assert list(users) == [("choose", "answered"), ("also this", "answered")]


# What the agent keeps in mind


def test_a_clear_beside_a_call_that_failed_is_refused(server: LocalDouble) -> None:
    clear = Call("clear_mind", {"reminder_content": "Goal"})
    server.brain = Scripted(Reply(calls=(clear, Call("delete_reminder", {"id": 4711}))), Reply("I stay."))
    dialog = dialog_with(server)
    say(dialog, "clean up")
    results = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "tool"]
    assert results[0].startswith("Refused: another tool call") and "no reminder 4711" in results[1]
    assert (dialog.round_number, server.refusals) == (1, [])


def test_two_clears_in_one_answer_are_refused_and_nothing_is_lost(server: LocalDouble) -> None:
    clears = tuple(Call("clear_mind", {"reminder_content": f"Goal {number}"}) for number in range(2))
    server.brain = Scripted(Reply(calls=clears), Reply("Then not."))
    dialog = dialog_with(server)
    say(dialog, "clean up")
    results = list(dialog.turns.filter(role="tool").values_list("status", flat=True))
    assert (dialog.round_number, results, server.refusals) == (1, ["error", "error"], [])


def test_reminders_have_a_budget_and_say_so(server: LocalDouble) -> None:
    long = "many words " * 12_000
    server.brain = Scripted(Reply(calls=(remind("short"),)), Reply(calls=(remind(long),)), Reply("Too long, I see."))
    dialog = dialog_with(server)
    say(dialog, "remember all of it")
    turn = dialog.turns.filter(role="tool").latest("seq")
    assert turn.status == "error" and "at most 16,000" in turn.text and "Shorten it, or delete one" in turn.text
    assert [row.text for row in dialog.reminders.all()] == ["short"]
    (row, size), *_ = reminders.list_reminders(dialog)
    assert (row.text, size) == ("short", 1)


def test_reminders_keep_their_ids_and_survive_a_clear(server: LocalDouble) -> None:
    dialog = dialog_with(server)
    row = reminders.add(dialog.pk, "keep")
    server.brain = Scripted(
        Reply(calls=(Call("update_reminder", {"id": row.pk, "content": "kept"}),)),
        Reply(calls=(Call("clear_mind", {"reminder_content": "Goal"}),)),
        Reply("fresh"),
    )
    say(dialog, "go")
    assert dialog.round_number == 2
    assert f"[reminder {row.pk}] kept" in server.bodies[-1]["messages"][-1]["content"]
