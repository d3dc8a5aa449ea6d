"""Rounds of a dialog."""

from django.db import models
from django.db.models.functions import Now

from dialogs.models.conversation import Dialog


class Round(models.Model):
    """A stretch between clears. The model sees its package, then its ``carried`` user turns, then its own turns."""

    class Cause(models.TextChoices):
        START = "start"
        CLEAR_MIND = "clear_mind"
        PERSON = "person"
        COUNTDOWN = "countdown"

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    cause = models.CharField(max_length=12, choices=Cause.choices)
    package = models.TextField(blank=True, help_text="the re-entry package it began with")
    carried = models.JSONField(default=list, help_text="seqs of unanswered user turns, oldest first")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["dialog", "number"], name="round_number_unique")]

    def __str__(self) -> str:
        return f"Round {self.number}"
