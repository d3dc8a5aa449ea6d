"""Stories that a dialog can live through, each to be broken at every point. Played by the scripted provider."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dialogs.actions import messages, questions, rewrite_requests
from dialogs.models import Dialog
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog
from tests.dialogs.vanishing import expire
from tests.faults.invariants import breaches

FULL = {"prompt_tokens": 120_000, "completion_tokens": 1}
LOW = {"prompt_tokens": 60, "completion_tokens": 1}
CLEAR = {"name": "clear_mind", "arguments": {"reminder_content": "Goal: test"}}
REMIND = {"name": "add_reminder", "arguments": {"content": "keep this"}}
LIST = {"name": "list_files", "arguments": {}}
ASKS_FIRST = {"tools": ["list_files"], "tool_approval": "always"}
ASK = {"name": "ask_human", "arguments": {"question": "Which?"}}


@dataclass(frozen=True)
class Scenario:
    """``begin`` brings the dialog to where work is owed; ``ends`` is what must come of it, broken or not."""

    name: str
    steps: tuple[dict[str, Any], ...]
    ends: dict[str, str]  # the messages' texts and how they end
    state: str = "idle"
    begin: Callable[[Dialog], object] = lambda dialog: messages.post_message(dialog.pk, "Hi")
    agent: dict[str, Any] = field(default_factory=dict)
    refusals: int = 0
    reminders: int = 0
    sentinels: int = 1  # answers that stand at the end

    def prepare(self, script: Script) -> Dialog:
        script(*self.steps)
        dialog = make_dialog(**self.agent)
        self.begin(dialog)
        return dialog


def _two_messages(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    messages.post_message(dialog.pk, "Ho")


def _full_then_asked(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "fill it")
    drive(dialog.pk)
    messages.post_message(dialog.pk, "Hi")


def _asked_and_answered(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    drive(dialog.pk)
    questions.answer(dialog.questions.get().pk, dialog.owner, "The red one")


def _asked_and_allowed(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    drive(dialog.pk)
    questions.answer(dialog.questions.get().pk, dialog.owner, "Allow")


def _clear_asked_for(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "fill it")
    drive(dialog.pk)
    rewrite_requests.clear(dialog.pk, "Goal: test", dialog.owner)


SCENARIOS = (
    Scenario("answer", ({"text": "Hello."},), {"Hi": "answered"}),
    Scenario("two messages", ({"text": "Hello."},), {"Hi": "answered", "Ho": "answered"}, begin=_two_messages),
    Scenario(
        "tools",
        ({"match": "^Hi$", "tool_calls": [REMIND, {"name": "list_files", "arguments": {}}]}, {"text": "done"}),
        {"Hi": "answered"},
        reminders=1,
    ),
    Scenario("question", ({"tool_calls": [ASK]},), {"Hi": "answering"}, state="waiting"),
    Scenario(
        "answered question",
        ({"match": "^Hi$", "tool_calls": [ASK]}, {"text": "thanks"}),
        {"Hi": "answered"},
        begin=_asked_and_answered,
    ),
    Scenario(
        "allowed call",
        ({"match": "^Hi$", "tool_calls": [LIST]}, {"text": "done"}),
        {"Hi": "answered"},
        begin=_asked_and_allowed,
        agent=ASKS_FIRST,
    ),
    Scenario("call to be allowed", ({"tool_calls": [LIST]},), {"Hi": "answering"}, state="waiting", agent=ASKS_FIRST),
    Scenario(
        "refused clears",
        ({"text": "no", "usage": FULL},),
        {"fill it": "answered", "Hi": "suspended"},
        state="suspended",
        begin=_full_then_asked,
        refusals=3,
    ),
    Scenario(
        "accepted clear",
        (
            {"match": "Context guidance", "tool_calls": [CLEAR, REMIND], "usage": FULL},
            {"match": "Goal: test", "text": "fresh", "usage": LOW},
            {"text": "full", "usage": FULL},
        ),
        {"fill it": "answered", "Hi": "answered"},
        begin=_full_then_asked,
    ),
    Scenario(
        "clear by the model",
        ({"match": "^Hi$", "tool_calls": [REMIND, CLEAR]}, {"text": "fresh"}),
        {"Hi": "answered"},
        reminders=1,
    ),
    Scenario("clear by a person", ({"text": "ok"},), {"fill it": "answered"}, begin=_clear_asked_for),
    Scenario(
        "failure",
        ({"error": {"kind": "refused", "message": "No."}},),
        {"Hi": "failed"},
        state="failed",
    ),
    Scenario(
        "retried error",
        ({"text": "lost", "error": {"kind": "network", "message": "Gone.", "retry_after": 0.01}}, {"text": "back"}),
        {"Hi": "answered"},
    ),
)


def drive_to_its_end(dialog: Dialog) -> None:
    """As the sweeper would, without its waits."""
    for _ in range(12):
        Dialog.objects.filter(pk=dialog.pk, state__in=["queued", "generating"]).update(wake_at=None)
        if Dialog.objects.get(pk=dialog.pk).lease_owner:
            expire(dialog)
        drive(dialog.pk)
        if Dialog.objects.get(pk=dialog.pk).state not in ("queued", "generating"):
            return
    raise AssertionError("it never comes to an end")


def check_end(scenario: Scenario, dialog: Dialog) -> list[str]:
    result = breaches([Dialog.objects.get(pk=dialog.pk)])
    ends = dict(dialog.turns.filter(role="user").values_list("text", "status"))
    if ends != scenario.ends:
        result.append(f"messages ended as {ends}")
    state = Dialog.objects.get(pk=dialog.pk).state
    if state != scenario.state:
        result.append(f"the dialog is {state}")
    refusals = dialog.generations.filter(purpose="forced_clear", outcome="discarded").count()
    if refusals != scenario.refusals:
        result.append(f"{refusals} refused attempts")
    if dialog.reminders.count() != scenario.reminders:
        result.append(f"{dialog.reminders.count()} reminders")
    if crashed := dialog.generations.filter(outcome="crashed").count() > 1:
        result.append(f"{crashed} crashed attempts of one crash")
    return result
