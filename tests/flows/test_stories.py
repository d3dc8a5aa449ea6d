"""The whole story of a full context against the strict double of every dialect.

Green, yellow, guided to a reminder and to a clear, red, refused three times, a question to a person, each of its exits,
and the dialog resumed after each: no request is refused, and no model has to be said to take no forced calls.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.actions import questions
from dialogs.models import Dialog, ForcingRefusal
from tests.doubles.brains import GUIDANCE, LAST_RESORT, Call, Prompt, Reply, Story
from tests.doubles.serving import Double
from tests.flows.conftest import Minds, go_on, say
from tests.flows.doubled import DIALECTS, dialog_at, name_server, start

pytestmark = pytest.mark.django_db(transaction=True)

LIMITS = {"optimal_max_tokens": 60_000, "critical_max_tokens": 100_000, "caution_remediation_cadence_generations": 2}
# Models that are spoken to as others of their provider are.
ALIKE = {
    "anthropic/claude-fable-5-2",
    "anthropic/claude-sonnet-5-5",
    "anthropic/claude-haiku-5-5",
    "openai/gpt-5.6-terra",
}
YELLOW, RED = (61_000, 5), (120_000, 5)


class Life:
    """Thinks, looks at files when it is told to, and reports ``usage`` until it has cleared its mind itself."""

    def __init__(self) -> None:
        self.story = Story(refuses=3, heeds="add_reminder")
        self.usage: tuple[int, int] | None = None
        self.guided = self.forced = 0

    def __call__(self, prompt: Prompt) -> Reply:
        usage, reply = self.usage, self._act(prompt)
        if any(call.name == "clear_mind" and call.arguments["reminder_content"].strip() for call in reply.calls):
            self.usage = None
        return replace(reply, usage=usage, reasoning="Let me see.")

    def _act(self, prompt: Prompt) -> Reply:
        is_forced = bool(prompt.required_tools) or LAST_RESORT in prompt.last.text
        is_guided = not is_forced and GUIDANCE in prompt.last.text
        self.forced, self.guided = self.forced + is_forced, self.guided + is_guided
        if not (is_forced or is_guided) and prompt.last.role == "user" and prompt.last.text.endswith("look"):
            return Reply("I look.", (Call("list_files", {"path": "."}),))
        return self.story(prompt)


@dataclass
class Stage:
    double: Double
    larger: Double  # of another dialect
    larger_name: str
    life: Life
    dialog: Dialog
    staff: User

    def refusals(self) -> list[str]:
        """But for LM Studio's socket, which is asked for and is not there."""
        return [one.rule for double in (self.double, self.larger) for one in double.refusals if one.rule != "path"]

    def level(self) -> str:
        return str(self.dialog.generations.filter(snapshot__isnull=False).latest("id").snapshot.level)

    def suspend(self, pending: str) -> None:
        """Fill the context; the next message meets an agent that refuses three times to clear its mind."""
        self.life.usage, self.life.story.refused, self.life.forced = RED, 0, 0
        say(self.dialog, "Fill it")
        assert self.level() == "critical"
        say(self.dialog, pending)
        assert (self.dialog.state, self.life.forced) == ("suspended", 3)
        question = self.dialog.questions.get(state="open")
        assert question.kind == "context_health_critical" and self.dialog.turns.get(text=pending).status == "suspended"
        assert [row.outcome for row in questions.attempts_of(question)] == ["discarded"] * 3

    def leave(self, action: str, **options: str) -> None:
        questions.resolve(self.dialog.questions.get(state="open").pk, self.staff, action, **options)
        go_on(self.dialog)

    def goes_on(self, pending: str) -> int:
        """The round in which the message that waited was answered, and the next one was."""
        say(self.dialog, "Please look")
        assert (self.refusals(), self.dialog.failure, self.dialog.state) == ([], "", "idle")
        assert self.dialog.turns.get(text=pending).status == "answered"
        return self.dialog.round_number


@pytest.fixture
def stage(request: Any, minds: Minds, monkeypatch: Any, staff: User) -> Iterator[Stage]:
    name = request.param
    names = list(DIALECTS)
    other = names[(names.index(name) + 1) % len(names)]
    if other.split("/")[0] == name.split("/")[0]:  # one server for each provider
        other = next(
            later for later in (*names[names.index(name) :], *names) if later.split("/")[0] != name.split("/")[0]
        )
    life = Life()
    with ExitStack() as stack:
        double, larger = stack.enter_context(start(name, life)), stack.enter_context(start(other, life))
        name_server(larger, minds, monkeypatch, other)
        dialog = dialog_at(double, minds, monkeypatch, name, LIMITS, tools=["list_files"])
        yield Stage(double, larger, other, life, dialog, staff)


@pytest.mark.parametrize(
    "stage", [pytest.param(name, marks=pytest.mark.deep if name in ALIKE else ()) for name in DIALECTS], indirect=True
)
def test_the_whole_story_is_accepted(stage: Stage) -> None:
    life, dialog = stage.life, stage.dialog
    say(dialog, "Please look")
    assert stage.level() == "healthy"

    life.usage = YELLOW
    say(dialog, "Please look")
    assert (stage.level(), life.guided, dialog.reminders.count()) == ("caution", 1, 1)
    life.story.heeds = "clear_mind"
    for _ in range(2):
        say(dialog, "Go on")
    assert (life.guided, dialog.round_number, stage.level()) == (2, 2, "healthy")

    stage.suspend("wait for a new try")
    stage.leave("retry")
    assert (stage.goes_on("wait for a new try"), life.forced) == (3, 4)

    stage.suspend("wait for a person")
    life.usage = None
    stage.leave("clear", reminder_content="Goal: go on.")
    assert stage.goes_on("wait for a person") == 4

    stage.suspend("wait for the draft")
    life.usage = None
    stage.leave("accept_draft")
    assert stage.goes_on("wait for the draft") == 5

    stage.suspend("wait for another model")
    life.usage = None
    asked = len(stage.larger.bodies)
    stage.leave("switch_model", provider=stage.larger_name.split("/")[0], model=stage.larger_name.split("/")[1])
    assert stage.goes_on("wait for another model") >= 5 and len(stage.larger.bodies) > asked

    life.usage, life.story.refused = (1_040_000, 5), 0
    say(dialog, "Fill it")
    say(dialog, "wait in vain")
    assert dialog.state == "suspended"
    stage.leave("close")
    assert dialog.state == "closed"
    assert (stage.refusals(), ForcingRefusal.objects.count()) == ([], 0)
    assert dialog.generations.filter(outcome="failed").count() == 0
