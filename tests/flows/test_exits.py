"""The exits of a critical question, each taken by an operator through the service that page, API and admin share."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from dialogs.actions import messages, model_choice, questions
from dialogs.actions.exits import exit_named
from dialogs.errors import Conflict, Invalid
from dialogs.models import Dialog, Question
from remediation.tokens.calibration import Calibration
from tests.dialogs.factories import make_operator
from tests.doubles.brains import Call, Prompt, Reply, Scripted
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import OVER, Minds, Serve, dialog_with, go_on, say

pytestmark = pytest.mark.django_db(transaction=True)

RED, GREEN = (120_000, 7), (500, 7)
FULL, NO = Reply("full", usage=RED), Reply("no", usage=RED)
FINE = Reply("fine", usage=GREEN)
PENDING = "and now,  please?"


@pytest.fixture
def server(serve: Serve) -> LocalDouble:
    return serve(context_length=128_000)


@pytest.fixture
def suspended(server: LocalDouble) -> Dialog:
    server.brain = Scripted(FULL, NO)
    dialog = dialog_with(server)
    say(dialog, "Sort the shelf by colour.")
    say(dialog, PENDING)
    assert dialog.state == "suspended"
    return dialog


def take(dialog: Dialog, user: User, action: str, **options: str) -> Question:
    question = questions.resolve(dialog.questions.get(state="open").pk, user, action, **options)
    go_on(dialog)
    return question


def asked(server: LocalDouble) -> int:
    return len(server.bodies)


def test_a_person_writes_the_package_and_the_pending_message_is_answered(
    server: LocalDouble, suspended: Dialog, staff: User
) -> None:
    server.brain = lambda _: FINE
    question = take(suspended, staff, "clear", reminder_content="Goal: sort the shelf, red is done")
    assert (suspended.state, suspended.round_number) == ("idle", 2)
    assert suspended.rounds.get(number=2).cause == "person"
    sent = [message["content"] for message in server.bodies[-1]["messages"]]
    assert "Goal: sort the shelf, red is done" in sent[1] and sent[2:] == [PENDING]
    assert suspended.turns.get(text=PENDING).status == "answered"
    _recorded(question, staff, "clear")


def _recorded(question: Question, by: User, action: str) -> None:
    question.refresh_from_db()
    assert (question.state, question.action, question.resolved_by) == ("resolved", action, by)
    assert question.resolved_at is not None
    entry = LogEntry.objects.get(object_id=str(question.pk))
    assert (entry.user, entry.change_message) == (by, f"Resolved: {exit_named(action).label}")


def test_a_person_accepts_the_drafted_package(server: LocalDouble, suspended: Dialog, staff: User) -> None:
    server.brain = lambda _: FINE
    draft = suspended.questions.get().draft
    assert "Sort the shelf by colour." in draft
    question = take(suspended, staff, "accept_draft")
    assert suspended.rounds.get(number=2).package == draft
    assert suspended.turns.get(text=PENDING).status == "answered"
    _recorded(question, staff, "accept_draft")


def test_a_forced_clear_is_tried_again_in_its_own_episode(server: LocalDouble, suspended: Dialog, staff: User) -> None:
    first = suspended.questions.get()
    question = take(suspended, staff, "retry")
    assert suspended.state == "suspended" and suspended.questions.filter(state="open").count() == 1
    second = suspended.questions.get(state="open")
    attempts = [questions.attempts_of(row) for row in (first, second)]
    assert [[row.outcome for row in rows] for rows in attempts] == [["discarded"] * 3] * 2
    assert not {row.pk for row in attempts[0]} & {row.pk for row in attempts[1]}
    _recorded(question, staff, "retry")
    package = Reply(calls=(Call("clear_mind", {"reminder_content": "Goal"}),), usage=RED)
    server.brain = Scripted(package, FINE)
    take(suspended, staff, "retry")
    assert suspended.turns.get(text=PENDING).status == "answered"


def test_a_retry_after_unreported_attempts_still_forces_a_clear(serve: Serve, staff: User) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(FULL, Reply("no", is_reported=False))
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, PENDING)
    take(dialog, staff, "retry")
    assert set(dialog.generations.order_by("id").values_list("purpose", flat=True)[1:]) == {"forced_clear"}
    assert dialog.generations.filter(purpose="forced_clear").count() == 6


def test_a_larger_model_judges_the_last_report_anew_and_answers(
    server: LocalDouble, suspended: Dialog, staff: User, minds: Minds
) -> None:
    minds.providers["double"]["models"]["larger"] = {"context_length": 1_000_000, "optimal_max_tokens": 150_000}
    minds.write()
    server.model = "larger"  # loaded in place of the other
    server.brain = lambda _: Reply("fine", usage=(121_000, 7))
    before = asked(server)
    Dialog.objects.update(calibration=1.3, calibration_fit=Calibration(slope=1.9).numbers)
    question = take(suspended, staff, "switch_model", model="larger")
    assert suspended.calibration is None
    assert Calibration.of_numbers(suspended.calibration_fit or ()).slope < 1.1, "learnt of the new model alone"
    assert (suspended.state, suspended.round_number, asked(server)) == ("idle", 1, before + 1)
    assert server.bodies[-1]["model"] == "larger" and server.bodies[-1]["messages"][-1]["content"] == PENDING
    assert suspended.generations.latest("id").snapshot.level == "healthy"
    _recorded(question, staff, "switch_model")


def test_a_move_is_offered_to_servers_and_to_no_script(
    suspended: Dialog, staff: User, minds: Minds, client: Client
) -> None:
    """Also to a model whose window only its server knows, as of all local ones; a script answers its own demo only."""
    minds.providers["studio"] = {"apiType": "lmstudio", "baseUrl": "http://127.0.0.1:9/v1", "models": {"m": {}}}
    minds.providers["double"]["models"]["larger"] = {"context_length": 1_000_000}
    minds.providers["double"]["models"]["smaller"] = {"context_length": 2_048}
    minds.write()
    client.force_login(staff)
    page = client.get(f"/q4h/{suspended.questions.get().pk}/").content.decode()
    options = re.findall(r'<option value="([^"]+)"', page)
    assert [name for name in options if name.startswith(("double/", "studio/", "demo/"))] == [
        "double/larger",
        "studio/m",
    ]


def moved_to_a_smaller_window(server: LocalDouble, minds: Minds, staff: User) -> Dialog:
    """A dialog of 120,000 tokens that was healthy with its first model, and is over the whole window of its second."""
    minds.set(server.model, context_length=1_000_000, optimal_max_tokens=150_000)
    minds.providers["double"]["models"]["smaller"] = {"context_length": 100_000}
    minds.write()
    server.brain = lambda _: FULL
    dialog = dialog_with(server)
    say(dialog, "Sort the shelf by colour.")
    assert dialog.generations.get().snapshot.level == "healthy"
    server.model = "smaller"  # loaded in place of the other
    assert model_choice.choose(dialog.pk, "double", "smaller", staff)
    return dialog


def test_a_retry_in_a_smaller_window_tries_anew_and_answers(server: LocalDouble, staff: User, minds: Minds) -> None:
    dialog = moved_to_a_smaller_window(server, minds, staff)
    server.brain = lambda _: NO
    say(dialog, PENDING)
    first = dialog.questions.get()
    take(dialog, staff, "retry")
    assert dialog.state == "suspended"
    assert purposes(dialog) == ["reply", *["forced_clear"] * 6]
    assert [len(questions.attempts_of(row)) for row in (first, dialog.questions.get(state="open"))] == [3, 3]
    server.brain = Scripted(Reply(calls=(Call("clear_mind", {"reminder_content": "Goal"}),), usage=RED), FINE)
    take(dialog, staff, "retry")
    assert (dialog.state, dialog.round_number, dialog.model) == ("idle", 2, "smaller")
    assert dialog.turns.get(text=PENDING).status == "answered"
    assert {body["model"] for body in server.bodies[1:]} == {"smaller"}


def test_a_retry_in_a_window_too_small_asks_again(server: LocalDouble, staff: User, minds: Minds) -> None:
    dialog = moved_to_a_smaller_window(server, minds, staff)
    server.brain = lambda _: OVER
    say(dialog, PENDING)
    assert (dialog.state, purposes(dialog)) == ("suspended", ["reply", "forced_clear"])
    take(dialog, staff, "retry")
    assert (dialog.state, purposes(dialog)) == ("suspended", ["reply", "forced_clear", "forced_clear"])
    assert dialog.turns.get(text=PENDING).status == "suspended"
    server.brain = lambda _: FINE
    take(dialog, staff, "accept_draft")
    assert (dialog.state, dialog.round_number) == ("idle", 2)
    assert dialog.turns.get(text=PENDING).status == "answered"


def test_the_next_attempts_use_the_window_of_their_time(
    server: LocalDouble, suspended: Dialog, staff: User, minds: Minds
) -> None:
    minds.set(server.model, context_length=64_000)
    take(suspended, staff, "retry")
    assert suspended.state == "suspended"
    attempts = questions.attempts_of(suspended.questions.get(state="open"))
    assert [(row.outcome, row.snapshot.model_context_limit) for row in attempts] == [("discarded", 64_000)] * 3
    assert "120,000 of 64,000 tokens" in server.bodies[-1]["messages"][-1]["content"]


def purposes(dialog: Dialog) -> list[str]:
    return list(dialog.generations.order_by("id").values_list("purpose", flat=True))


def test_an_unusable_model_is_refused_and_the_question_stays_open(
    suspended: Dialog, staff: User, minds: Minds, serve: Serve
) -> None:
    minds.providers["studio"] = {"apiType": "lmstudio", "baseUrl": "http://127.0.0.1:9/v1", "models": {"m": {}}}
    own = minds.providers["double"]["models"][suspended.model_id]
    minds.providers["double"]["models"]["smaller"] = {**own, "context_length": 2_048}
    minds.write()
    unusable = ({"model": "none such"}, {"provider": "studio", "model": "m"}, {"model": suspended.model_id})
    for options in (*unusable, {"model": "smaller"}):
        with pytest.raises(Invalid):
            questions.resolve(suspended.questions.get().pk, staff, "switch_model", **options)
    suspended.refresh_from_db()
    assert (suspended.state, suspended.model, suspended.questions.get().state) == ("suspended", "", "open")


def test_closing_ends_the_message_and_everything_stays_readable(
    server: LocalDouble, suspended: Dialog, staff: User
) -> None:
    before = asked(server)
    question = take(suspended, staff, "close")
    assert (suspended.state, asked(server)) == ("closed", before)
    assert suspended.turns.get(text=PENDING).status == "superseded"
    _recorded(question, staff, "close")
    with pytest.raises(Conflict):
        messages.post_message(suspended.pk, "hello?")


def test_only_those_who_may_resolve_take_an_exit(suspended: Dialog, server: LocalDouble) -> None:
    question = suspended.questions.get()
    with pytest.raises(Conflict) as refused:
        questions.resolve(question.pk, suspended.owner, "clear", reminder_content="Goal")
    assert refused.value.code == "permission_required"
    suspended.owner.user_permissions.add(Permission.objects.get(codename="resolve_question"))
    server.brain = lambda _: FINE
    take(suspended, User.objects.get(pk=suspended.owner_id), "clear", reminder_content="Goal")
    assert suspended.state == "idle"


def test_there_is_no_other_exit_and_each_is_taken_once(suspended: Dialog, staff: User, server: LocalDouble) -> None:
    question = suspended.questions.get()
    for action, options in (("answer", {}), ("clear", {"reminder_content": " \n"})):
        with pytest.raises(Invalid):
            questions.resolve(question.pk, staff, action, **options)
    server.brain = lambda _: FINE
    take(suspended, staff, "accept_draft")
    with pytest.raises(Conflict) as second:
        questions.resolve(question.pk, make_operator(), "accept_draft")
    assert second.value.code == "already_resolved"
    assert staff.get_username() in second.value.message and "UTC" in second.value.message


def test_a_clear_by_a_person_generates_only_for_owed_messages(serve: Serve, staff: User) -> None:
    """The third failure may come with an answer: then the dialog is suspended, and nothing waits."""
    server = serve(context_length=128_000)
    clear = Reply(calls=(Call("clear_mind", {"reminder_content": "Goal"}),), usage=RED)
    server.brain = Scripted(FULL, NO, NO, clear, FULL)
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, PENDING)
    assert (dialog.state, dialog.turns.get(text=PENDING).status) == ("suspended", "answered")
    before = asked(server)
    take(dialog, staff, "clear", reminder_content="Goal")
    assert (dialog.state, dialog.round_number, asked(server)) == ("idle", 3, before)
    server.brain = lambda _: FINE
    say(dialog, "next")
    assert [message["content"] for message in server.bodies[-1]["messages"]][-1] == "next"
    assert dialog.state == "idle"


def test_a_message_that_was_queued_before_the_suspension_follows_the_exit(serve: Serve, staff: User) -> None:
    from django.db import connection

    server = serve(context_length=128_000)
    clear = Reply(calls=(Call("clear_mind", {"reminder_content": "Goal"}),), usage=RED)

    def answer(prompt: Prompt) -> Reply:
        if len(server.bodies) == 5:  # while the answer that suspends is being written
            messages.post_message(dialog.pk, "one more")
            connection.close()
        return [FULL, NO, NO, clear, FULL, FINE][min(len(server.bodies), 6) - 1]

    server.brain = answer
    dialog = dialog_with(server)
    say(dialog, "fill it")
    say(dialog, PENDING)
    assert (dialog.state, dialog.turns.get(text="one more").status) == ("suspended", "queued")
    take(dialog, staff, "clear", reminder_content="Goal")
    assert (dialog.state, dialog.turns.get(text="one more").status) == ("idle", "answered")
