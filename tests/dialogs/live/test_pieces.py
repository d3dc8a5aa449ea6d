"""After every event each piece of an open page is what the same piece of a fresh page is."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from dialogs.actions import messages, questions, reminders, rewrite_requests
from dialogs.live.frames import frames_after
from dialogs.models import Dialog, Generation, Question
from dialogs.queries.context_report import next_size
from dialogs.runtime.driver import drive
from dialogs.store.change import open_change
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.every_state import ASKS, FULL, PLAIN, Zoo, operator
from tests.dialogs.html_tree import ENTRIES, NOT_ENTRIES, PIECES, elements

pytestmark = pytest.mark.django_db(transaction=True)


class OpenPage:
    """A page that was fetched once and lives on frames since, as the browser's script applies them."""

    def __init__(self, dialog: Dialog) -> None:
        self.dialog, self.client = dialog, browser_of(dialog.owner)
        self.seq = Dialog.objects.get(pk=dialog.pk).last_event_seq
        self.shown = self._fresh()

    def _fresh(self) -> dict[str, str]:
        result = elements(self.client.get(f"/d/{self.dialog.pk}/").content.decode())
        return {name: html for name, html in result.items() if self._is_piece(name)}

    def _is_piece(self, name: str) -> bool:
        recent = f"recent-{self.dialog.pk}"
        return name in (*PIECES, recent) or (name.startswith(ENTRIES) and not name.startswith(NOT_ENTRIES))

    def check(self, after: str) -> None:
        """Apply what has happened since, and compare with the page as it is fetched now."""
        for frame in frames_after(self.dialog.pk, self.dialog.owner_id, self.seq) or []:
            self.seq = frame["seq"]
            pieces = elements(frame.get("html", ""))
            self.shown |= {name: html for name, html in pieces.items() if self._is_piece(name)}
        fresh = self._fresh()
        differing = {name for name in self.shown.keys() | fresh.keys() if self.shown.get(name) != fresh.get(name)}
        assert {name: (self.shown.get(name), fresh.get(name)) for name in differing} == {}, after


def watched(dialog: Dialog, *steps: tuple[str, Callable[[], Any]]) -> None:
    """One page looks after each step; one that is opened before each step looks when all have been done."""
    page, late = OpenPage(dialog), []
    for name, step in steps:
        late.append((name, OpenPage(dialog)))
        step()
        page.check(name)
    for name, slow in late:
        slow.check(f"all from {name} on")


def test_a_conversation(script: Script) -> None:
    zoo = Zoo(script)
    dialog = zoo.new()
    pk, owner = dialog.pk, zoo.owner

    def post(text: str) -> Callable[[], Any]:
        return lambda: messages.post_message(pk, text)

    def question() -> Question:
        return Question.objects.get(dialog=dialog, state="open")

    watched(
        dialog,
        ("the first message", post("one")),
        ("its answer", lambda: drive(pk)),
        ("a second message", post("two")),
        ("a queued one", post("three")),
        ("taking it back", lambda: messages.remove_queued(pk, dialog.turns.latest("seq").seq, owner)),
        ("stop", lambda: messages.stop(pk)),
        ("retry", lambda: messages.retry(pk)),
        ("the answer to it", lambda: drive(pk)),
        ("another title", lambda: messages.rename(pk, "Orders")),
        ("a reminder", lambda: reminders.add(pk, "Mind the gap")),
        ("its edit", lambda: reminders.update(pk, dialog.reminders.get().pk, text="Mind the step")),
        ("its end", lambda: reminders.delete(pk, dialog.reminders.get().pk)),
        ("a question to come", lambda: script({"match": "four", **ASKS}, {"text": "Thanks."})),
        ("a message", post("four")),
        ("the question", lambda: drive(pk)),
        ("its answer", lambda: questions.answer(question().pk, owner, "EUR")),
        ("going on", lambda: drive(pk)),
        ("a call that fails", lambda: script({"error": "auth"})),
        ("a message for it", post("five")),
        ("the failure", lambda: drive(pk)),
        ("the end", lambda: messages.close(pk, owner)),
    )


def test_a_look_between_a_call_and_its_question(script: Script) -> None:
    zoo = Zoo(script)
    dialog = zoo.with_generation(Generation.Outcome.RUNNING, leased=True)

    def calls() -> None:
        with open_change(dialog.pk) as change:
            call = {"id": "c1", "name": questions.ASK_HUMAN, "arguments": '{"question": "EUR or USD?"}'}
            change.turn("assistant", "complete", tool_calls=[call])

    def asks() -> None:
        with open_change(dialog.pk) as change:
            questions.ask(change, "EUR or USD?", "c1")

    watched(dialog, ("the call", calls), ("its question", asks))


def test_rewrites_and_clears(script: Script) -> None:
    zoo = Zoo(script)
    dialog = zoo.talk(*(f"message {number} about orders_{number}.csv" for number in range(8)))
    pk, owner = dialog.pk, zoo.owner
    watched(
        dialog,
        ("a fresh start", lambda: rewrite_requests.request(pk, "fresh_start", owner)),
        ("its run", lambda: drive(pk)),
        ("a message", lambda: messages.post_message(pk, "next")),
        ("its answer", lambda: drive(pk)),
        ("undo", lambda: rewrite_requests.undo(RemediationRun.objects.get(dialog=dialog).pk, owner)),
        ("a clear", lambda: rewrite_requests.clear(pk, "Go on.", owner)),
        ("the clear's run", lambda: drive(pk)),
        ("a message in the new round", lambda: messages.post_message(pk, "last")),
        ("its answer", lambda: drive(pk)),
        ("the clear's undo", lambda: rewrite_requests.undo_clear(pk, owner, next_size)),
        ("the clear again", lambda: rewrite_requests.undo(RemediationRun.objects.latest("pk").pk, owner)),
    )


def test_what_a_person_asks_while_an_answer_is_written(script: Script) -> None:
    """The state stays, and yet the page changes at once: in this tab and in all others."""
    zoo = Zoo(script)
    dialog = zoo.with_generation(Generation.Outcome.RUNNING, leased=True)
    pk = dialog.pk

    def crash() -> None:
        with open_change(pk) as change:
            Generation.objects.filter(dialog=dialog, outcome="running").update(outcome="crashed")
            change.dialog.lease_owner, change.dialog.stop_requested = "", False

    watched(
        dialog,
        ("a prune", lambda: rewrite_requests.request(pk, "prune", zoo.owner)),
        ("stop", lambda: messages.stop(pk)),
        ("a lost worker", crash),
    )


def test_a_critical_context_and_a_larger_model(script: Script, settings: Any) -> None:
    zoo = Zoo(script)
    script(FULL, context_length=1000)
    dialog = zoo.new()
    pk, staff = dialog.pk, operator()

    def two_models() -> None:
        script(PLAIN, context_length=1000)
        path = settings.MINDS_DIR / "llm.yaml"
        catalog = yaml.safe_load(path.read_text())
        models = catalog["providers"]["test"]["models"]
        models["larger"] = {**models["model"], "context_length": 64_000}
        path.write_text(yaml.safe_dump(catalog))

    def move() -> None:
        question = Question.objects.get(dialog=dialog, state="open")
        questions.resolve(question.pk, staff, "switch_model", provider="test", model="larger")

    watched(
        dialog,
        ("a message", lambda: messages.post_message(pk, "one")),
        ("a full context", lambda: drive(pk)),
        ("another message", lambda: messages.post_message(pk, "two")),
        ("three refusals", lambda: drive(pk)),
    )
    two_models()
    watched(dialog, ("a larger model", move), ("its answer", lambda: drive(pk)))
    dialog.refresh_from_db()
    assert dialog.model_id == "larger"
