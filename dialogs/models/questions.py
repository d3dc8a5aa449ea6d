"""Questions that wait for a person's answer."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from dialogs.models.conversation import Dialog
from dialogs.models.database_defaults import EMPTY_LIST


class Question(models.Model):
    """A question for a human (Q4H), which the agent or the runtime asks."""

    class Kind(models.TextChoices):
        QUESTION = "question"
        CRITICAL = "context_health_critical"
        BUDGET = "budget_exceeded"
        REFUSED = "provider_refused"

    class State(models.TextChoices):
        OPEN = "open"
        ANSWERED = "answered"
        RESOLVED = "resolved"
        CANCELLED = "cancelled"

    # The beginning of a question whether a call may run. The call's arguments follow it.
    APPROVAL = gettext_noop("Allow {tool} to run with these arguments? Any other answer refuses.")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="questions")
    kind = models.CharField(max_length=24, choices=Kind.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    text = models.TextField()
    choices = models.JSONField(default=list, db_default=EMPTY_LIST, help_text="answers to choose from, if any")
    tool_call_id = models.CharField(max_length=120, blank=True)
    approves = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        help_text="the tool whose call it allows, if it is about that",  # Tool.identity
    )
    edited_arguments = models.TextField(
        blank=True, default="", db_default="", help_text="JSON that a person allowed in place of the call's arguments"
    )
    asked_by = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        help_text="the tool that asks it in the middle of its call",  # Tool.identity
    )
    clear_episode = models.PositiveIntegerField(null=True)
    draft = models.TextField(blank=True, help_text="a re-entry package drafted from stored facts")
    answer = models.TextField(blank=True)
    action = models.CharField(max_length=16, blank=True, help_text="the exit taken, for the critical kind")
    created_at = models.DateTimeField(db_default=Now())
    escalated_at = models.DateTimeField(null=True, help_text="when people were reminded of it last, being overdue")
    escalations = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="how many steps of its escalation were taken"
    )
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(fields=["state", "created_at"], name="question_by_state"),
            models.Index(fields=["created_at", "id"], name="question_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(state="open"), name="one_open_question_per_dialog"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text[:60]}"

    @property
    def tool(self) -> str:
        """Return the name of the tool whose call the question is about, or an empty text."""
        return (self.approves or self.asked_by).rpartition("/")[2]

    @property
    def arguments(self) -> str:
        """Return the arguments of the call that the question is about, as JSON."""
        return self.text.partition("\n\n")[2] if self.approves else ""

    @property
    def is_from_outside(self) -> bool:
        """Check whether an outside program asked, so that no agent here waits for the answer."""
        return self.kind == self.Kind.QUESTION and not self.tool_call_id
