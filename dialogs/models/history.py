"""Rows beside a dialog's turns: rounds, events, and parts of requests."""

from typing import ClassVar

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
        UNDO = "undo"  # of the last clear; keeps its package and messages, so that undoing this clears again

    CLEARS: ClassVar[frozenset[str]] = frozenset({Cause.CLEAR_MIND, Cause.PERSON, Cause.COUNTDOWN})

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


class Event(models.Model):
    """Something that happened, numbered per dialog without gaps. ``data`` holds references, and texts are read from
    their rows.

    ``more`` holds further events without rows of their own: see ``dialogs.store.events``.
    """

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="events")
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=24)
    data = models.JSONField(default=dict)
    more = models.TextField(
        default="",
        db_default="",
        blank=True,
        help_text="items of a JSON array, a comma before each: an event as [type, values], or the milliseconds after "
        "created_at at which those behind it happened",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["dialog", "seq"], name="event_seq_unique")]

    def __str__(self) -> str:
        return f"{self.type} {self.seq}"


class RequestPart(models.Model):
    """A part that many requests share, stored once: instructions, tools, a model's settings, reminders as stated.

    Guidance is not stored, since it is rendered again from its prompt. Parts with words of people belong to their
    dialog and are deleted with it; parts of agents and models are shared.
    """

    digest = models.CharField(primary_key=True, max_length=32)
    dialog = models.ForeignKey(Dialog, null=True, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()

    def __str__(self) -> str:
        return self.digest
