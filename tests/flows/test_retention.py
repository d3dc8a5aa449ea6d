"""Importance retention over 200 turns with tools: nothing overruns, nothing is orphaned,
and what matters stays in sight."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialogs.models import Dialog
from remediation.models import RemediationRun
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import Serve, dialog_with, overflows, say
from tests.flows.texts import is_summary, prose

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 8_000
MESSAGES = 100  # with their answers 200 turns, and those of the tools beside them
CONSTRAINTS = {
    3: "Never push to the branch release-7.",
    21: "Do not touch /srv/ledger/keys.pem, whatever happens.",
    42: "You must not mail customers before Friday.",
    64: "Avoid the word 'synergy' in every text.",
}
FAILING = {9: "missing-A17.txt", 33: "missing-B42.txt", 58: "missing-C99.txt"}  # files that are not there
REPORTED = {15: "ERROR E1042: the disk of depot 4 is full.", 77: "The nightly import failed with code 137."}


class Worker:
    """Reads two files at once for every other message, then tells about them. Now and then a file is missing."""

    def __init__(self) -> None:
        self.number = -1

    def __call__(self, prompt: Prompt) -> Reply:
        if is_summary(prompt.body["messages"]):
            return Reply("They went on, step by step.")
        if prompt.last.role == "tool":
            return Reply(f"I have read it. {prose(self.number, 90)}")
        self.number += 1
        if self.number in FAILING:
            return Reply("I look.", calls=(Call("read_file", {"path": FAILING[self.number]}),))
        if self.number in REPORTED:
            return Reply(REPORTED[self.number])
        if self.number % 2:
            return Reply(prose(self.number, 120))
        paths = (f"notes-{self.number % 6}.txt", f"notes-{self.number % 4}.txt")
        return Reply("I look.", calls=tuple(Call("read_file", {"path": path}) for path in paths))


@pytest.fixture
def notes(settings: Any) -> None:
    for number in range(6):
        (Path(settings.WORKSPACE_DIR) / f"notes-{number}.txt").write_text(prose(1_000 + number, 60 + 70 * number))


def asked(number: int) -> str:
    return CONSTRAINTS.get(number, f"Please go on with step {number}. {prose(2_000 + number, 46)}")


def talked(server: LocalDouble) -> tuple[Dialog, dict[str, int]]:
    """The dialog, and how many requests had been sent when each thing that must stay was first said."""
    dialog, answer = dialog_with(server, context_policy="retention", tools=["read_file"]), {}
    for number in range(MESSAGES):
        answer.update({text: len(server.bodies) for text in named(number)})
        say(dialog, asked(number))
    return dialog, answer


def named(number: int) -> Iterator[str]:
    """What stands for a constraint or a failure that message ``number`` brings up:
    its own words, or the file's name."""
    yield from (kept[number] for kept in (CONSTRAINTS, FAILING, REPORTED) if number in kept)


@pytest.mark.timeout(300)
def test_two_hundred_turns_keep_what_matters(serve: Serve, notes: None) -> None:
    server = serve(window=LIMIT, context_length=LIMIT)
    server.brain = Worker()
    dialog, answer = talked(server)

    # Sound: the server refuses what is longer than its window, and what a strict provider would (``violations``).
    assert overflows(server) == 0
    assert dialog.turns.filter(role="user", status="answered").count() == MESSAGES
    assert dialog.turns.filter(role="tool").count() > MESSAGES * 8 // 10
    outcomes = set(dialog.generations.values_list("purpose", "outcome"))
    assert outcomes == {("reply", "kept"), ("summary", "kept")}  # no forced clear

    # By retention, and not too often: each prune goes far below what triggered it.
    runs = list(RemediationRun.objects.filter(dialog=dialog).order_by("id"))
    assert {run.policy for run in runs} == {"retention"}
    assert 5 <= len(runs) <= MESSAGES // 4
    assert all(run.est_after < run.est_before * 9 // 10 for run in runs)
    removed_calls = [unit for run in runs for unit in run.removed if len(unit["turns"]) > 1]
    assert removed_calls, "no tool exchange was ever pruned, so nothing was shown about pairs"

    # What matters is seen in every request since it was said, as it was said.
    assert len(answer) == len(CONSTRAINTS) + len(FAILING) + len(REPORTED)
    for text, first in answer.items():
        # Summaries are asked for with what goes out of sight; one may come before the reply that
        # first brings a text up.
        replies = [body for body in server.bodies[first:] if not is_summary(body["messages"])]
        for body in replies[1:]:
            assert seen(body["messages"], text), f"{text!r} is no longer in sight"
    last = server.bodies[-1]["messages"]
    assert any("step 99." in (message["content"] or "") for message in last)
    assert not any("step 5." in (message["content"] or "") for message in last), "old small talk should have gone"


def seen(messages: list[dict[str, Any]], text: str) -> bool:
    """As a message of its own, or as a call with its result; a line of the ledger alone would not do."""
    if text in FAILING.values():
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or () if text in str(call)]
        return any(message.get("tool_call_id") in calls and text in message["content"] for message in messages)
    contents = [message.get("content") or "" for message in messages]
    lines = [line for content in contents for line in content.splitlines()]
    # Whole, in the account behind turn and speaker, or in the ledger.
    return text in contents or f"- {text}" in lines or any(line.partition(": ")[2] == text for line in lines)


def test_an_overflow_where_no_limit_is_known_prunes_what_was_refused(serve: Serve) -> None:
    """The catalog knows no limit, so the default of 100,000 holds; the server's true window shows only in a refusal."""
    server = serve(window=LIMIT, refuses="too long")
    server.brain = lambda _: Reply("Noted.")
    dialog = dialog_with(server, context_policy="retention")
    for number in range(16):
        say(dialog, prose(number, 600))
    assert overflows(server) == 1  # the refused request itself
    assert dialog.turns.filter(role="user", status="answered").count() == 16
    (run,) = RemediationRun.objects.filter(dialog=dialog)
    assert (run.policy, run.reason) == ("retention", "the provider refused the request as too long")
    assert run.est_after <= LIMIT * 6 // 10
