"""Context health's caution, as a provider sees it: a log of every request that arrived,
beside what was stored and shown."""

from threading import Timer
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from dialogs.actions.messages import stop
from dialogs.models import Dialog, Generation, RequestPart
from remediation.guidance import CLEAR_OR_REMIND
from tests.doubles.brains import Call, Prompt, Reply, Scripted
from tests.flows.conftest import Minds, Serve, dialog_with, say
from tests.flows.traces import shown, shown_holding, tables_holding

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Context guidance from the runtime"  # how guidance begins; nothing else says this
YELLOW, GREEN = (110_000, 5), (90_000, 5)


def guided(bodies: list[Any]) -> list[int]:
    """Which requests ended with guidance. Guidance anywhere else than at the end, or twice, is an error."""
    results = []
    for number, body in enumerate(bodies):
        at = [index for index, message in enumerate(body["messages"]) if WORDS in str(message.get("content"))]
        if at:
            assert at == [len(body["messages"]) - 1] and body["messages"][-1]["role"] == "user"
            results.append(number)
    return results


def talk(dialog: Dialog, messages: int) -> None:
    for number in range(messages):
        say(dialog, f"message {number}")


def test_guidance_ends_each_tenth_request_and_leaves_no_trace(serve: Serve, staff: User) -> None:
    server = serve(context_length=128_000)
    server.brain = lambda _: Reply("Noted.", usage=YELLOW)
    dialog = dialog_with(server)
    talk(dialog, 26)  # one that turns it yellow, then 25 in caution
    assert guided(server.bodies) == [1, 11, 21]
    assert server.bodies[1]["messages"][-1]["content"] == CLEAR_OR_REMIND
    assert not server.refusals
    assert list(dialog.generations.filter(guided=True).order_by("id")) == [
        list(dialog.generations.order_by("id"))[index] for index in (1, 11, 21)
    ]
    assert tables_holding("message 7")  # the scan sees what is there
    for words in (WORDS, "Then do exactly one of these two"):
        assert tables_holding(words) == []
    assert tables_holding("re-entry package") == ["dialogs_requestpart"]
    (tools,) = RequestPart.objects.filter(text__contains="re-entry package")
    assert tools.text.startswith('[["clear_mind",'), "a tool describes itself so"
    assert shown_holding(dialog, staff, "message 25")
    assert shown_holding(dialog, staff, WORDS) == []


def test_both_choices_come_with_the_same_package_outline_and_its_words() -> None:
    choices = [line for line in CLEAR_OR_REMIND.splitlines() if line.startswith(("1.", "2.", "3."))]
    assert [choice.split("(")[0] for choice in choices] == ["1. clear_mind", "2. add_reminder"]
    assert all("<re-entry package>" in choice for choice in choices) and '"position": 0' in choices[1]


def test_a_gray_generation_freezes_the_count(serve: Serve) -> None:
    server = serve(context_length=128_000)
    usages: list[Any] = [YELLOW] * 6 + [None, None] + [YELLOW] * 7

    def answer(_: Prompt) -> Reply:
        usage = usages[len(server.bodies) - 1]
        return Reply("ok", usage=usage, is_reported=usage is not None)

    server.brain = answer
    dialog = dialog_with(server)
    talk(dialog, 15)
    assert guided(server.bodies) == [1, 13]  # 1 to 5 and 8 to 12 count, 6 and 7 do not


def test_a_healthy_report_after_a_raised_optimum_restarts_the_count(serve: Serve, minds: Minds) -> None:
    server = serve(context_length=128_000)
    server.brain = lambda _: Reply("ok", usage=YELLOW)
    dialog = dialog_with(server)
    talk(dialog, 5)
    minds.set(server.model, optimal_max_tokens=112_000)
    talk(dialog, 2)
    assert Generation.objects.filter(dialog=dialog).latest("id").snapshot.level == "healthy"
    minds.set(server.model, optimal_max_tokens=100_000)
    talk(dialog, 2)
    assert guided(server.bodies) == [1, 7]


def test_an_operator_may_set_another_cadence(serve: Serve) -> None:
    server = serve(context_length=128_000, caution_remediation_cadence_generations=3)
    server.brain = lambda _: Reply("ok", usage=YELLOW)
    talk(dialog_with(server), 9)
    assert guided(server.bodies) == [1, 4, 7]


def test_a_failed_guided_generation_is_repeated_with_its_guidance(serve: Serve) -> None:
    server = serve(context_length=128_000)
    failed = Reply(error=(400, {"error": {"message": "no", "code": "invalid_request_error"}}))
    busy = Reply(error=(503, "busy"))
    server.brain = Scripted(Reply("ok", usage=YELLOW), failed, busy, Reply("ok", usage=YELLOW))
    dialog = dialog_with(server)
    talk(dialog, 4)
    # 0 turns it yellow; 1 is refused for good, 2 for a moment; 3 is the first guided one that was kept.
    assert guided(server.bodies) == [1, 2, 3]
    outcomes = list(dialog.generations.order_by("id").values_list("outcome", "guided"))
    assert outcomes == [("kept", False), ("failed", True), ("failed", True), ("kept", True), ("kept", False)]


def test_a_stopped_guided_generation_does_not_count(serve: Serve) -> None:
    server = serve(context_length=128_000)

    def stop_soon() -> None:
        stop(dialog.pk)
        connection.close()

    def answer(prompt: Prompt) -> Reply:
        if len(server.bodies) != 2:
            return Reply("ok", usage=YELLOW)
        Timer(1.0, stop_soon).start()  # once something has been said
        return Reply("too late " * 400, chunk_chars=10, chunk_seconds=0.05, usage=YELLOW)

    server.brain = answer
    dialog = dialog_with(server)
    talk(dialog, 4)
    assert guided(server.bodies) == [1, 2]
    stopped = dialog.turns.get(role="assistant", status="stopped")
    assert "too late".startswith(stopped.text[:8]) and dialog.turns.get(text="message 1").status == "stopped"


def test_a_voluntary_clear_starts_a_round_and_the_count_anew(serve: Serve) -> None:
    server = serve(context_length=128_000)
    clear = Reply(calls=(Call("clear_mind", {"reminder_content": "Goal: sort the shelf"}),), usage=YELLOW)
    server.brain = Scripted(
        Reply("ok", usage=YELLOW), clear, Reply("fresh", usage=(400, 5)), *[Reply("ok", usage=YELLOW)] * 3
    )
    dialog = dialog_with(server, recall=False)
    talk(dialog, 5)
    assert guided(server.bodies) == [1, 4]
    assert (dialog.round_number, dialog.rounds.get(number=2).package) == (2, "Goal: sort the shelf")
    fresh = [message["content"] for message in server.bodies[2]["messages"]]
    assert any("Goal: sort the shelf" in text for text in fresh) and fresh[-1] == "message 1"
    assert "message 0" not in fresh


def test_a_reminder_at_position_0_stays_in_sight(serve: Serve) -> None:
    server = serve(context_length=128_000)
    remind = Reply(calls=(Call("add_reminder", {"content": "Goal: sort the shelf", "position": 0}),), usage=YELLOW)
    server.brain = Scripted(Reply("ok", usage=YELLOW), remind, Reply("ok", usage=YELLOW))
    dialog = dialog_with(server)
    dialog.reminders.create(position=0, text="older")
    talk(dialog, 3)
    assert [row.text for row in dialog.reminders.all()] == ["Goal: sort the shelf", "older"]
    assert dialog.round_number == 1
    stated = [
        sum("Goal: sort the shelf" in str(message["content"]) for message in b["messages"]) for b in server.bodies
    ]
    assert stated == [0, 0, 1, 1] and "reminders changed" in server.bodies[2]["messages"][-1]["content"]
    assert server.bodies[3]["messages"][: len(server.bodies[2]["messages"])] == server.bodies[2]["messages"]
    assert guided(server.bodies) == [1]


def test_operators_see_that_guidance_was_given_and_when(serve: Serve, staff: User) -> None:
    server = serve(context_length=128_000)
    server.brain = lambda _: Reply("ok", usage=YELLOW)
    dialog = dialog_with(server)
    talk(dialog, 2)
    generations = shown(dialog, staff)[f"/api/dialogs/{dialog.pk}/generations?limit=1000"]
    assert '"guided":false' in generations.replace(" ", "") and '"guided":true' in generations.replace(" ", "")
