"""What once ended in forced clears, told in the fewest messages that show it."""

from pathlib import Path
from typing import Any

import pytest

from dialogs.models import Artifact, Generation, Turn
from tests.doubles.brains import Call, Prompt, Reply
from tests.flows.conftest import Serve, dialog_with, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_huge_result_under_no_policy_is_put_aside(serve: Serve, settings: Any) -> None:
    server = serve(window=8_000, context_length=8_000)
    (Path(settings.WORKSPACE_DIR) / "big.txt").write_text("The cart of wool came late. " * 1_018)  # 28,504 characters

    def answer(prompt: Prompt) -> Reply:
        if prompt.last.role == "tool":
            return Reply("It is about carts.")
        return Reply(calls=(Call("read_file", {"path": "big.txt"}),))

    server.brain = answer
    dialog = dialog_with(server, context_policy="none", tools=["read_file"])
    say(dialog, "Read big.txt.")
    assert dialog.state == "idle" and Artifact.objects.filter(dialog_id=str(dialog.pk)).exists()
    assert not dialog.generations.filter(purpose=Generation.Purpose.FORCED_CLEAR).exists()


def test_the_request_after_a_clear_goes_on_from_its_package_alone(serve: Serve) -> None:
    server = serve(context_length=128_000)
    package = "The port of the importer is 48151. Go on with the invoices."

    def answer(prompt: Prompt) -> Reply:
        if prompt.last.text == "Clear your mind." and package not in str(prompt.messages):
            return Reply(calls=(Call("clear_mind", {"reminder_content": package}),))
        return Reply("Understood.")

    server.brain = answer
    dialog = dialog_with(server, recall=True)
    say(dialog, "The importer listens on port 48151 of db7.example.org.")
    say(dialog, "Clear your mind.")
    first = str(server.bodies[-1]["messages"])
    assert first.count("48151") == 1 and "db7.example.org" not in first, "the package alone, and once"
    assert dialog.turns.filter(role=Turn.Role.USER, status="answered").count() == 2
