"""``critical_policy: countdown``: for runs without people. The runtime clears by itself, and never suspends."""

from typing import Any

import pytest

from dialogs.actions import questions
from dialogs.models import Dialog
from remediation.models import ContextEvent
from tests.doubles.brains import Call, Prompt, Reply, Scripted
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import OVER, Serve, dialog_with, say

pytestmark = pytest.mark.django_db(transaction=True)

RED, GREEN = (120_000, 7), (500, 7)


@pytest.fixture
def server(serve: Serve) -> LocalDouble:
    server = serve(context_length=128_000)
    server.brain = lambda _: Reply("full", usage=RED)
    return server


def countdown_with(server: LocalDouble) -> Dialog:
    return dialog_with(server, critical_policy="countdown")


def guidance_in(body: dict[str, Any]) -> str:
    return next((m["content"] for m in body["messages"] if "Context guidance" in str(m["content"])), "")


def test_after_five_guided_generations_the_runtime_clears(server: LocalDouble) -> None:
    dialog = countdown_with(server)
    for number in range(6):
        say(dialog, f"message {number}")
    counted = [guidance_in(body).rsplit("after ", 1)[-1].split(" more")[0] for body in server.bodies]
    assert counted == ["", "5", "4", "3", "2", "1"]
    assert not dialog.generations.exclude(outcome="kept").exists()  # nothing was discarded
    assert dialog.round_number == 1
    server.brain = lambda _: Reply("fresh", usage=GREEN)
    say(dialog, "message 6")
    assert (dialog.state, dialog.round_number) == ("idle", 2)
    current = dialog.rounds.get(number=2)
    assert current.cause == "countdown" and "message 0" in current.package
    sent = [message["content"] for message in server.bodies[-1]["messages"]]
    assert sent[-1] == "message 6" and current.package in sent[-2]
    assert dialog.turns.get(text="message 6").status == "answered"
    assert not dialog.questions.exists()


def test_the_agent_may_clear_its_mind_before_the_runtime_does(server: LocalDouble) -> None:
    dialog = countdown_with(server)
    clear = Reply(calls=(Call("clear_mind", {"reminder_content": "Goal"}),), usage=RED)
    server.brain = Scripted(Reply("full", usage=RED), clear, Reply("fresh", usage=GREEN))
    say(dialog, "one")
    say(dialog, "two")
    assert (dialog.round_number, dialog.rounds.get(number=2).cause, dialog.guided_generations) == (2, "clear_mind", 0)


def test_gray_generations_freeze_the_countdown(server: LocalDouble) -> None:
    usages = [RED, RED, None, RED, RED]

    def answer(_: Prompt) -> Reply:
        usage = usages[min(len(server.bodies), 5) - 1]
        return Reply("ok", usage=usage, is_reported=usage is not None)

    server.brain = answer
    dialog = countdown_with(server)
    for number in range(5):
        say(dialog, f"message {number}")
    remaining = [guidance_in(body).rsplit("after ", 1)[-1].split(" more")[0] for body in server.bodies]
    assert remaining == ["", "5", "4", "", "4"]


def test_an_overflow_is_cleared_for_at_once(server: LocalDouble) -> None:
    server.brain = Scripted(Reply("ok", usage=GREEN), OVER, Reply("fits now", usage=GREEN))
    dialog = countdown_with(server)
    say(dialog, "one")
    say(dialog, "two")
    assert (dialog.state, dialog.round_number, dialog.turns.get(text="two").status) == ("idle", 2, "answered")


def test_a_message_that_never_fits_fails_alone(server: LocalDouble) -> None:
    server.brain = lambda prompt: OVER if "far too long" in str(prompt.messages) else Reply("ok", usage=GREEN)
    dialog = countdown_with(server)
    say(dialog, "hello")
    say(dialog, "far too long")
    assert (dialog.state, dialog.turns.get(text="far too long").status) == ("failed", "failed")
    assert "too long even in a fresh round" in dialog.failure and not dialog.questions.exists()
    assert len(server.bodies) == 5  # hello, and four tries
    assert ContextEvent.objects.filter(dialog=dialog, code="TOKEN_LIMIT_EXCEEDED").count() == 5
    server.brain = lambda _: Reply("ok", usage=GREEN)
    say(dialog, "shorter")
    assert (dialog.state, dialog.turns.get(text="shorter").status) == ("idle", "answered")


def test_the_default_is_to_escalate(server: LocalDouble) -> None:
    dialog = dialog_with(server)
    say(dialog, "one")
    say(dialog, "two")
    assert dialog.state == "suspended" and len(questions.attempts_of(dialog.questions.get())) == 3
