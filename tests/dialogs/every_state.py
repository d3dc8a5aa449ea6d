"""One person's dialogs, in every state and with everything that a dialog can hold,
made by the product's own services."""

from collections.abc import Callable, Mapping

from django.contrib.auth.models import Group, User

from dialogs.actions import folders, forks, messages, questions, reminders, rewrite_requests, sharing, turn_marks
from dialogs.actions.attachments import check_files
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import ConnectedProvider, Dialog, Generation, PromptTemplate, Question, ToolServer, Turn
from dialogs.runtime.driver import drive
from dialogs.store.change import open_change
from remediation.models import RemediationRun
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, send
from tests.pixels import picture

PLAIN = {
    "text": "A long answer about data/orders.csv. " * 30,
    "usage": {"prompt_tokens": 4_321, "completion_tokens": 7},
}
ASKS = {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "EUR or USD?"}}]}
REMINDS = {"tool_calls": [{"name": "add_reminder", "arguments": {"content": "Mind the gap"}}]}
FULL = {"text": "No.", "usage": {"prompt_tokens": 950, "completion_tokens": 5}}


class Zoo:
    """Makes dialogs of one ``owner``; each way to make one is a method and a state that the pages must show."""

    def __init__(self, script: Script) -> None:
        self.script, self.owner, self.agent = script, UserFactory.create(), AgentFactory.create()

    def dialogs(self) -> dict[str, Dialog]:
        """By what each is an example of. Beside them stands a connected provider and a tool server that are silent."""
        ConnectedProvider.objects.get_or_create(
            provider_id="silent", name="Silent", kind="ollama", base_url="http://127.0.0.1:1/v1", model_ids="m"
        )
        ToolServer.objects.get_or_create(server_id="silent", url="http://127.0.0.1:1/mcp")
        PromptTemplate.objects.create(owner=self.owner, name="weekly", text="What happened this week?")
        makers: dict[str, Callable[[], Dialog]] = {
            "empty": self.new,
            "answered": lambda: self.talk("one", "two"),
            "long": lambda: self.talk(*(f"message {number}" for number in range(24))),
            "queued": self.queued,
            "generating": lambda: self.with_generation(Generation.Outcome.RUNNING, leased=True),
            "crashed call": lambda: self.with_generation(Generation.Outcome.CRASHED),
            "pruner's call": lambda: self.with_generation(Generation.Outcome.KEPT, Generation.Purpose.PRUNE),
            "waiting": self.waiting,
            "answered question": self.answered_question,
            "suspended": self.suspended,
            "refused": self.refused,
            "failed": self.failed,
            "stopped": self.stopped,
            "closed": self.closed,
            "archived": self.archived,
            "rewritten": self.rewritten,
            "undone": self.undone,
            "cleared": self.cleared,
            "with tools": self.with_tools,
            "with files": self.with_files,
            "without usage": lambda: self.talk("one", step={"text": "Hello.", "usage": "none"}),
            "without a model": self.without_a_model,
            "requested rewrite": self.requested,
            "branched": self.branched,
        }
        made = {name: make() for name, make in makers.items()}
        self.share(made["answered question"])
        folders.move(made["answered"], self.owner, "Harbour dues")
        self.script(PLAIN)
        for dialog in made.values():
            dialog.refresh_from_db()
        return made

    def new(self) -> Dialog:
        return messages.create_dialog(self.owner, self.agent.pk)

    def talk(self, *texts: str, step: Mapping[str, object] | None = None) -> Dialog:
        self.script(step or PLAIN)
        dialog = self.new()
        send(dialog, *texts)
        return dialog

    def branched(self) -> Dialog:
        """Its last answer is another version of one that was rated."""
        origin = self.talk("one", "two")
        turn_marks.rate(origin.pk, 4, "down")
        made = forks.regenerate(forks.Branch(origin.pk, 4, self.owner))
        drive(made.pk)
        return made

    def queued(self) -> Dialog:
        dialog = self.new()
        for text in ("first", "second"):
            messages.post_message(dialog.pk, text)
        return dialog

    def with_generation(self, outcome: str, purpose: str = "reply", *, leased: bool = False) -> Dialog:
        """A call that has no snapshot: it runs, its worker died, or it was no answer."""
        dialog = self.talk("one")
        messages.post_message(dialog.pk, "two")
        with open_change(dialog.pk) as change:
            row = change.dialog
            generation = Generation.objects.create(
                dialog=row,
                round_number=1,
                purpose=purpose,
                outcome=outcome,
                epoch=1,
                provider="test",
                model="model",
                answers_seq=row.answering_seq,
            )
            change.event("generation", id=generation.pk, purpose=purpose, attempt=1, outcome=outcome)
            if leased:
                row.lease_owner, change.lease_seconds = "a worker", 600
        return dialog

    def waiting(self) -> Dialog:
        return self.talk("Import it", step=ASKS)

    def with_files(self) -> Dialog:
        """In a message that was answered, and in one that is queued."""
        files = check_files([("plan.png", picture()), ("notes.txt", b"tea at four " * 40)])
        dialog = self.new()
        for text in ("look", ""):
            messages.post_message(dialog.pk, text, attached=files)
        return dialog

    def answered_question(self) -> Dialog:
        dialog = self.waiting()
        self.script({"text": "Thanks."})
        questions.answer(Question.objects.get(dialog=dialog).pk, self.owner, "EUR")
        drive(dialog.pk)
        return dialog

    def share(self, dialog: Dialog) -> None:
        """With a group, and with whoever has its link."""
        self.owner.groups.add(Group.objects.create(name="Harbour"))
        sharing.share(dialog.pk, "Harbour", self.owner)
        sharing.make_link(dialog.pk, self.owner)

    def suspended(self) -> Dialog:
        self.script(FULL, context_length=1000)
        dialog = self.new()
        send(dialog, "one", "two")
        return dialog

    def refused(self) -> Dialog:
        return self.talk("one", step={"error": "refused_for_good"})

    def failed(self) -> Dialog:
        return self.talk("one", step={"error": "auth"})

    def stopped(self) -> Dialog:
        dialog = self.queued()
        messages.stop(dialog.pk)
        return dialog

    def closed(self) -> Dialog:
        dialog = self.talk("one")
        messages.close(dialog.pk, self.owner)
        return dialog

    def archived(self) -> Dialog:
        dialog = self.talk("one")
        folders.archive(self.owner, [dialog.pk], away=True)
        return dialog

    def rewritten(self) -> Dialog:
        dialog = self.talk(*(f"message {number} about orders{number}.csv" for number in range(8)))
        for kind in ("fresh_start", "prune"):
            rewrite_requests.request(dialog.pk, kind, self.owner)
            drive(dialog.pk)
        assert RemediationRun.objects.filter(dialog=dialog).exists()
        return dialog

    def undone(self) -> Dialog:
        dialog = self.rewritten()
        run = RemediationRun.objects.filter(dialog=dialog).latest("pk")
        rewrite_requests.undo(run.pk, self.owner)
        return dialog

    def cleared(self) -> Dialog:
        dialog = self.talk("one")
        rewrite_requests.clear(dialog.pk, "Go on with step 3.", self.owner)
        drive(dialog.pk)
        reminders.add(dialog.pk, "Mind the gap")
        send(dialog, "two")
        return dialog

    def with_tools(self) -> Dialog:
        """Calls with a result, with an error, and one of which nobody knows whether it took effect."""
        self.script(REMINDS, {"tool_calls": [{"name": "no_such_tool", "arguments": {}}]}, {"text": "Done."})
        dialog = self.new()
        send(dialog, "one")
        newest = dialog.turns.filter(role=Turn.Role.TOOL).latest("seq")
        Turn.objects.filter(pk=newest.pk).update(status=Turn.Status.UNKNOWN)
        return dialog

    def without_a_model(self) -> Dialog:
        dialog = self.talk("one")
        Dialog.objects.filter(pk=dialog.pk).update(provider="gone", model="gone")
        return dialog

    def requested(self) -> Dialog:
        """A rewrite that no worker has begun yet."""
        dialog = self.talk("one")
        rewrite_requests.request(dialog.pk, "prune", self.owner)
        return dialog


def operator() -> User:
    return UserFactory.create(is_staff=True, is_superuser=True)
