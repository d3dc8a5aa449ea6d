"""The driver against a small model of it, through random lives: what people do, what models answer, what breaks.

The model knows nothing of leases, epochs, transactions or commits. Policies and guidance are pure and have tests of
their own, so the model asks them as the driver does.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dialogs.actions import messages, questions, rewrite_requests
from dialogs.errors import Conflict
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from dialogs.store.lease import MAX_CRASHES
from dominds.llm.usage import Usage, UsageUnavailable
from health.levels import Level, Thresholds, judge
from remediation.context import Context
from remediation.decisions import ForceClear, Proceed, Suspend
from remediation.guidance import Counters, after_clear, after_discarded, after_kept, clears_exhausted, judge_last_clear
from remediation.policies import decide, none
from tests.dialogs.factories import make_dialog, write_minds
from tests.dialogs.vanishing import call_and_vanish, take_and_vanish
from tests.faults.effort import everything
from tests.faults.invariants import breaches

pytestmark = pytest.mark.django_db(transaction=True)

REFUSALS: dict[str, list[dict[str, Any]]] = {
    "text": [],
    "blank": [{"name": "clear_mind", "arguments": {"reminder_content": "  "}}],
    "two": [{"name": "clear_mind", "arguments": {"reminder_content": "snt-dddddddd"}}] * 2,
    "other": [{"name": "add_reminder", "arguments": {"content": "snt-dddddddd"}}],
    "broken": [{"name": "clear_mind", "arguments": '{"reminder_content": "snt-dddd'}],
}
CLEAR = [{"name": "clear_mind", "arguments": {"reminder_content": "Goal: go on"}}]
TOOLS = {
    "tool": {"name": "delete_reminder", "arguments": {"id": 1}},
    "ask": {"name": "ask_human", "arguments": {"question": "Which?"}},
}


@dataclass(frozen=True)
class Behaviour:
    """How the model behaves while it is driven once."""

    plain: str  # text, tool, ask or error
    forced: str  # clear, error or a kind of refusal
    reports: bool  # whether replies report usage; forced attempts do

    def steps(self, prompt: int) -> list[dict[str, Any]]:
        reported = {"prompt_tokens": prompt, "completion_tokens": 1}
        usage = reported if self.reports else "none"
        error = {"error": {"kind": "refused", "message": "No."}}
        calls = CLEAR if self.forced == "clear" else REFUSALS.get(self.forced, [])
        forced = error if self.forced == "error" else {"text": "snt-dddddddd", "tool_calls": calls, "usage": reported}
        last = error if self.plain == "error" else {"text": "well", "usage": usage}
        steps = [{"match": "critically full", **forced}]
        if self.plain in TOOLS:
            steps.append({"match": r"msg-\d+", "tool_calls": [TOOLS[self.plain]], "usage": usage})
        return [*steps, last]


behaviours = st.builds(
    Behaviour,
    plain=st.sampled_from(["text", "text", "tool", "ask", "error"]),
    forced=st.sampled_from(["clear", "clear", "error", *REFUSALS]),
    reports=st.sampled_from([True, True, True, False]),
)


@dataclass
class Story:
    """The model. ``messages`` maps each text to how it stands."""

    limits: Thresholds
    messages: dict[str, str] = field(default_factory=dict)
    answering: str | None = None
    continuing: bool = False
    clear_requested: bool = False
    held: bool = False  # a worker that vanished still has the lease
    stop: bool = False
    crashes: int = 0
    refused: bool = False  # since the newest answer that was kept; always in the same words
    question: str = ""
    closed: bool = False
    failed: bool = False
    prompt: int | None = None
    counters: Counters = field(default_factory=Counters)
    rounds: int = 1
    forced_under: tuple[int, Thresholds] | None = None  # round and limits, if the newest call was a forced attempt
    outcomes: list[str] = field(default_factory=list)
    called_for: set[tuple[str, int]] = field(default_factory=set)  # messages and rounds with a tool call

    @property
    def level(self) -> Level:
        return judge(Usage(self.prompt, 1) if self.prompt else UsageUnavailable(), self.limits).level

    @property
    def owes(self) -> bool:
        return self.answering is not None or self.continuing or self.clear_requested

    @property
    def state(self) -> str:
        if self.closed:
            return "closed"
        if self.question:
            return "waiting" if self.question == "question" else "suspended"
        if self.held:
            return "generating"
        if self.owes or "queued" in self.messages.values():
            return "queued"
        return "failed" if self.failed else "idle"

    def take(self, text: str) -> None:
        self.messages[text], self.answering, self.failed, self.crashes = "answering", text, False, 0

    def take_next(self) -> None:
        queued = [text for text, status in self.messages.items() if status == "queued"]
        if self.answering is None and not self.continuing and queued:
            self.take(queued[0])

    def end(self, status: str) -> None:
        if self.answering is not None:
            self.messages[self.answering] = status
        self.answering, self.continuing = None, False

    def fail(self) -> None:
        self.failed = True
        self.end("failed")

    def clear(self, *, forced: bool, by_person: bool = False) -> None:
        self.rounds, self.prompt = self.rounds + 1, None
        self.counters = after_clear(self.counters, forced=forced)
        self.continuing = not by_person and self.answering is None

    def suspend(self, kind: str = "critical") -> None:
        self.question = kind
        if self.answering is not None:
            self.messages[self.answering] = "suspended"

    def drive(self, behaviour: Behaviour, prompt: int) -> None:
        if self.state not in ("queued", "generating"):
            return
        self.crashes, self.held = self.crashes + self.held, False
        self.take_next()
        while not self.question:
            if self.stop or self.crashes >= MAX_CRASHES:
                self.end("stopped") if self.stop else self.fail()
                self.clear_requested = self.stop = False
                self.crashes = 0
                self.take_next()
            elif not self.owes:
                self.take_next()
                if not self.owes:
                    break
            elif self.clear_requested:
                self.clear_requested = False
                self.clear(forced=False, by_person=True)
            else:
                self.call(behaviour, prompt)
                if not self.question:
                    self.take_next()
        self.crashes, self.stop = 0, False

    def call(self, behaviour: Behaviour, prompt: int) -> None:
        is_clear_due = self.forced_under == (self.rounds, self.limits)
        match decide(
            none.POLICY, Context(self.level, failed_clears=self.counters.failed_clears, clear_due=is_clear_due)
        ):
            case Suspend():
                self.suspend()
            case ForceClear():
                self.crashes, self.forced_under = 0, (self.rounds, self.limits)
                self.force(behaviour.forced, prompt)
            case _:
                self.crashes, self.forced_under = 0, None
                self.reply(behaviour, prompt)

    def force(self, kind: str, prompt: int) -> None:
        if kind == "error":
            self.outcomes += ["failed", "failed"]  # once more without being made to call
            self.refused = True
            self.suspend()
            return
        self.prompt = prompt
        if kind == "clear":
            self.outcomes.append("kept")
            self.refused = False
            self.clear(forced=True)
        else:
            self.outcomes.append("discarded")
            self.counters = after_discarded(judge_last_clear(self.counters, self.level))

    def reply(self, behaviour: Behaviour, prompt: int) -> None:
        subject = (self.answering or "", self.rounds)
        calls = behaviour.plain in TOOLS and self.answering is not None and subject not in self.called_for
        if behaviour.plain == "error" and not calls:
            self.outcomes.append("failed")
            self.suspend("refused") if self.refused else self.fail()
            self.refused = True
            return
        self.outcomes.append("kept")
        self.refused = False
        self.prompt = prompt if behaviour.reports else None
        self.counters = after_kept(self.counters, self.level, guided=False)
        if not calls:
            self.end("answered")
            if clears_exhausted(self.counters):
                self.suspend()
            return
        self.called_for.add(subject)
        if behaviour.plain == "ask":
            self.question = "question"


class DriverMachine(RuleBasedStateMachine):
    folder: Path

    @initialize()
    def open_dialog(self) -> None:
        self.prompt, self.sent = 50_000, 0
        self.story = Story(Thresholds(128_000, 100_000, 115_200))
        self.write(Behaviour("text", "clear", reports=True))
        # A report that is red only by what was recalled forces no clear, and the model recalls nothing.
        self.dialog = make_dialog(recall=False)

    def write(self, behaviour: Behaviour) -> None:
        limits = self.story.limits
        write_minds(
            self.folder,
            behaviour.steps(self.prompt),
            context_length=limits.context_limit,
            optimal_max_tokens=limits.optimal_max,
            critical_max_tokens=limits.critical_max,
        )

    @rule()
    def post(self) -> None:
        self.sent += 1
        text, story = f"msg-{self.sent}", self.story
        if story.closed or story.question in ("critical", "refused"):
            with pytest.raises(Conflict):
                messages.post_message(self.dialog.pk, text)
            return
        messages.post_message(self.dialog.pk, text, f"client-{self.sent}")
        messages.post_message(self.dialog.pk, text, f"client-{self.sent}")
        if story.state in ("idle", "failed"):
            story.take(text)
        else:
            story.messages[text] = "queued"
        story.failed = False

    @rule(behaviour=behaviours, more=st.integers(1, 9))
    def drive(self, behaviour: Behaviour, more: int) -> None:
        self.prompt += more  # a prompt that does not grow would be taken for truncated
        self.write(behaviour)
        drive(self.dialog.pk)
        self.story.drive(behaviour, self.prompt)

    @rule(level=st.sampled_from([Level.HEALTHY, Level.CAUTION, Level.CRITICAL]))
    def edit_limits(self, level: Level) -> None:
        critical = self.prompt - 1 if level is Level.CRITICAL else 115_200
        optimal = self.prompt - 1 if level is Level.CAUTION else 100_000
        self.story.limits = Thresholds(128_000, optimal, critical)
        self.write(Behaviour("text", "clear", reports=True))

    @precondition(lambda self: self.story.state in ("queued", "generating"))
    @rule(in_call=st.booleans())
    def crash(self, in_call: bool) -> None:
        story = self.story
        story.crashes, story.held = story.crashes + story.held, True
        story.take_next()
        is_clear_due = story.forced_under == (story.rounds, story.limits)
        context = Context(story.level, failed_clears=story.counters.failed_clears, clear_due=is_clear_due)
        may_call = not (story.clear_requested or story.stop) and story.owes and story.crashes < MAX_CRASHES
        if in_call and may_call and isinstance(decide(none.POLICY, context), Proceed | ForceClear):
            call_and_vanish(self.dialog)
        else:
            take_and_vanish(self.dialog)

    @rule()
    def stop(self) -> None:
        messages.stop(self.dialog.pk)
        story = self.story
        if story.held:
            story.stop = True
        elif story.state == "queued":
            story.end("stopped")
            story.clear_requested = False
            story.take_next()

    @precondition(lambda self: self.story.state in ("idle", "failed") and self.story.messages)
    @rule()
    def retry(self) -> None:
        taken = [text for text, status in self.story.messages.items() if status not in ("queued", "superseded")]
        newest = max(taken, key=self.position_of, default=None)
        if newest is None or self.story.messages[newest] not in ("failed", "stopped"):
            with pytest.raises(Conflict):
                messages.retry(self.dialog.pk)
        else:
            messages.retry(self.dialog.pk)
            self.story.take(newest)

    def position_of(self, text: str) -> int:
        return self.dialog.turns.get(text=text, role="user").position or 0

    @precondition(lambda self: self.story.state in ("idle", "queued", "failed"))
    @rule()
    def clear_by_hand(self) -> None:
        rewrite_requests.clear(self.dialog.pk, "Goal: go on", self.dialog.owner)
        self.story.clear_requested = True

    @precondition(lambda self: self.story.state == "waiting")
    @rule(answered=st.booleans())
    def end_question(self, answered: bool) -> None:
        question = self.dialog.questions.get(state="open")
        if answered:
            questions.answer(question.pk, self.dialog.owner, "The red one")
        else:
            questions.cancel(question.pk, self.dialog.owner)
        self.story.question = ""
        self.story.continuing = self.story.continuing or self.story.answering is None

    @precondition(lambda self: self.story.state == "suspended" and self.story.question == "refused")
    @rule()
    def give_up(self) -> None:
        self.take("give_up")
        self.story.fail()

    @precondition(lambda self: self.story.state == "suspended")
    @rule(action=st.sampled_from(["retry", "clear", "accept_draft"]))
    def resolve(self, action: str) -> None:
        if self.story.question == "refused":
            action = "retry"
        self.take(action)
        story = self.story
        if story.answering is not None:
            story.messages[story.answering] = "answering"
        if action == "retry":
            story.counters = Counters(story.counters.kept_since_guidance, story.counters.guided_generations)
        else:
            story.clear(forced=False, by_person=True)

    def take(self, action: str) -> None:
        question = self.dialog.questions.get(state="open")
        self.dialog.owner.is_superuser = True
        self.dialog.owner.save()
        questions.resolve(question.pk, self.dialog.owner, action, reminder_content="Goal: go on")
        self.story.question = ""

    @precondition(lambda self: len(self.story.messages) > 5 and not self.story.closed)
    @rule()
    def close(self) -> None:
        messages.close(self.dialog.pk, self.dialog.owner)
        story = self.story
        for text, status in story.messages.items():
            if status in ("queued", "answering", "suspended"):
                story.messages[text] = "superseded"
        story.closed, story.held = True, False

    @invariant()
    def the_rows_are_as_the_model_says(self) -> None:
        dialog, story = Dialog.objects.get(pk=self.dialog.pk), self.story
        assert dict(dialog.turns.filter(role="user").values_list("text", "status")) == story.messages
        assert (dialog.state, dialog.round_number) == (story.state, story.rounds)
        assert (dialog.failed_clears, dialog.prompt_tokens) == (story.counters.failed_clears, story.prompt)
        ended = dialog.generations.exclude(outcome__in=["crashed", "running", "stopped"]).order_by("id")
        assert [row.outcome for row in ended] == story.outcomes

    @invariant()
    def no_invariant_is_broken(self) -> None:
        dialog = Dialog.objects.get(pk=self.dialog.pk)
        assert [breach for breach in breaches([dialog]) if "still" not in breach and " run in " not in breach] == []
        assert not dialog.turns.filter(text__contains="snt-dddddddd").exists()
        assert not dialog.reminders.filter(text__contains="snt-dddddddd").exists()


@everything
def test_the_driver_lives_as_its_model(tmp_path: Path, settings: Any) -> None:
    settings.MINDS_DIR, settings.DATA_DIR = tmp_path / "minds", tmp_path / "var"
    DriverMachine.folder = settings.MINDS_DIR
    run_state_machine_as_test(DriverMachine, settings=_effort())


def _effort() -> settings:
    return settings(
        max_examples=150,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
