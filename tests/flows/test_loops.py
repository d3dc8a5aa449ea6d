"""An agent that repeats itself is told so first; one that goes on starts afresh,
and learns why, or its message ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialogs.actions import messages
from remediation.models import ContextEvent, RemediationRun
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import Serve, dialog_with, go_on, say
from tests.flows.texts import prose

pytestmark = pytest.mark.django_db(transaction=True)

NUDGE = "You have made the same call 3 times in a row"


class Stubborn:
    """Reads the same file again and again, until it is told of it ``heeds`` times, or its mind is new."""

    def __init__(self, heeds: bool) -> None:
        self.heeds = heeds

    def __call__(self, prompt: Prompt) -> Reply:
        answer = "\n".join(message.text for message in prompt.messages)
        if "You write the hand-off summary" in answer:
            return Reply("")
        if "read it" not in prompt.last.text and "Resuming after a loop" in answer:
            return Reply("I try another way.")
        if self.heeds and NUDGE in answer:
            return Reply("I stop.")
        return Reply(calls=(Call("read_file", {"path": "notes.txt"}),)) if "read it" in answer else Reply("Noted.")


@pytest.fixture
def notes(settings: Any) -> Iterator[Path]:
    path = Path(settings.WORKSPACE_DIR) / "notes.txt"
    path.write_text("nothing new")
    yield path


def talk(server: LocalDouble, heeds: bool, policy: str = "breaking") -> Any:
    server.brain = Stubborn(heeds)
    dialog = dialog_with(server, context_policy=policy, tools=["read_file"])
    say(dialog, prose(1, 2500))
    say(dialog, "Please read it until something is new.")
    return dialog


def ends(server: LocalDouble) -> list[bool]:
    return [NUDGE in str(body["messages"][-1]["content"]) for body in server.bodies]


def test_an_agent_that_heeds_the_nudge_is_left_alone(serve: Serve, notes: Path) -> None:
    server = serve(context_length=32_000)
    dialog = talk(server, heeds=True)
    assert ends(server) == [False] * 4 + [True]
    assert "returned: nothing new" in server.bodies[-1]["messages"][-1]["content"]
    assert dialog.turns.filter(role="assistant").last().text == "I stop."
    assert not dialog.turns.filter(text__contains=NUDGE).exists()
    assert not RemediationRun.objects.filter(dialog=dialog).exists()


def test_one_that_goes_on_starts_afresh_and_learns_why(serve: Serve, notes: Path) -> None:
    server = serve(context_length=32_000)
    dialog = talk(server, heeds=False)
    assert ends(server).count(True) == 1
    run = RemediationRun.objects.get(dialog=dialog)
    assert run.reason == "a loop was detected"
    assert "Resuming after a loop: " in str(run.view)
    assert dialog.turns.filter(role="assistant").last().text == "I try another way."


@pytest.mark.parametrize("policy", ["none", "autocompaction", "retention"])
def test_where_no_policy_starts_afresh_the_message_ends(serve: Serve, notes: Path, policy: str) -> None:
    server = serve(context_length=32_000)
    dialog = talk(server, heeds=False, policy=policy)
    assert dialog.state == "failed"
    assert "made the same calls 15 times" in dialog.failure and "read_file" in dialog.failure
    nudged = ["You have made the same call" in str(body["messages"][-1]["content"]) for body in server.bodies]
    assert nudged == [False] * 4 + [True] * 12
    assert ContextEvent.objects.get(dialog=dialog).code == "LOOP_DETECTED"
    server.brain = lambda prompt: Reply("I stop.")
    messages.retry(dialog.pk)
    go_on(dialog)
    assert dialog.turns.filter(role="assistant").last().text == "I stop."


def test_polling_is_no_loop(serve: Serve, notes: Path) -> None:
    server = serve(context_length=32_000)
    seen = 0

    def poll(prompt: Prompt) -> Reply:
        nonlocal seen
        seen += 1
        notes.write_text(f"{seen} per cent")
        return Reply(calls=(Call("read_file", {"path": "notes.txt"}),)) if seen < 8 else Reply("Done.")

    server.brain = poll
    dialog = dialog_with(server, context_policy="breaking", tools=["read_file"])
    say(dialog, "Wait for it.")
    assert not any(ends(server))
    assert not RemediationRun.objects.filter(dialog=dialog).exists()
