"""Side dialogs, which are dialogs that an agent's call opened, and the task documents of teams."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class SideDialog(models.Model):
    """The place of a side dialog in its team, and the newest call that asked something in it.

    It is at work until ``answered_at``, and open until ``ended_at``; the ``reason`` of one that is open says why it did
    not report. What it ``owes`` is done in a transaction of its
    own, after that of the dialog above: rows of dialogs are locked from below to above and never the other way.
    """

    class Owes(models.TextChoices):
        NOTHING = ""
        ASK = "ask"  # the task is to be sent to it
        END = "end"

    dialog = models.OneToOneField("dialogs.Dialog", on_delete=models.PROTECT, primary_key=True, related_name="+")
    parent = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="+", db_index=False)
    root = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="+")
    level = models.PositiveSmallIntegerField(help_text="1 right below the root")
    name = models.CharField(max_length=60, help_text="by which its parent goes on in it")
    call_id = models.CharField(max_length=120, help_text="the parent's call that waits for its report, or got it last")
    task = models.TextField(help_text="what that call asks")
    waits = models.BooleanField(help_text="the report is the call's result; otherwise a message")
    traceparent = models.CharField(
        max_length=55, blank=True, db_default="", help_text="that call's span, if it was kept"
    )
    owes = models.CharField(max_length=3, choices=Owes.choices, default=Owes.ASK, blank=True)
    asked_at = models.DateTimeField(db_default=Now())
    answered_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=200, blank=True, help_text="why it ended")

    class Meta:
        ordering = ["asked_at", "dialog"]
        constraints = [
            models.UniqueConstraint(fields=["parent", "call_id"], name="side_dialog_of_call"),
            models.UniqueConstraint(
                fields=["parent", "name"], condition=models.Q(ended_at__isnull=True), name="side_dialog_name"
            ),
        ]
        indexes = [
            models.Index(fields=["owes"], condition=~models.Q(owes=""), name="side_dialog_owing"),
            models.Index(
                fields=["asked_at"],
                condition=models.Q(answered_at__isnull=True, ended_at__isnull=True),
                name="side_dialog_at_work",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class TaskRevision(models.Model):
    """One version of a team's task document. It belongs to the root; a version is never changed."""

    root = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="+", db_index=False)
    version = models.PositiveIntegerField()
    sections = models.JSONField(help_text="texts by the names of sections")
    section = models.CharField(max_length=20, help_text="the section that this version changed; empty: several")
    by_dialog = models.ForeignKey(
        "dialogs.Dialog", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the person who wrote it; none: the agent of that dialog",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["root", "version"], name="task_version_unique")]

    def __str__(self) -> str:
        return f"Version {self.version}"
