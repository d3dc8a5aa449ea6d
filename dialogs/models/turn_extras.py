"""Rows beside turns: choices about recall, vectors, oversized tool results, and images."""

from django.db import models
from django.db.models.functions import Now

from dialogs.models.conversation import Dialog


class RecallChoice(models.Model):
    """A person's decision about one turn: to recall it first in each request, or never in this dialog."""

    class Choice(models.TextChoices):
        PINNED = "pinned"
        DISMISSED = "dismissed"

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="recall_choices")
    seq = models.PositiveIntegerField(help_text="of the turn")
    choice = models.CharField(max_length=10, choices=Choice.choices)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["dialog", "seq"], name="recall_choice_unique")]

    def __str__(self) -> str:
        return f"{self.choice} {self.seq}"


class TurnVectors(models.Model):
    """The vectors of a turn's passages, by which recall compares meaning. They are made anew where they are missing."""

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="+")
    seq = models.PositiveIntegerField(help_text="of the turn")
    content = models.BinaryField()

    class Meta:
        verbose_name_plural = "turn vectors"
        constraints = [models.UniqueConstraint(fields=["dialog", "seq"], name="turn_vectors_unique")]

    def __str__(self) -> str:
        return f"Vectors of turn {self.seq}"


class Artifact(models.Model):
    """The full text of an oversized tool result, which ``read_artifact`` reads in parts."""

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="artifacts")
    tool_call_id = models.CharField(max_length=120)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"Artifact {self.pk}: {len(self.text):,} characters"


class Attachment(models.Model):
    """The bytes of an image, whose digest turns name in ``attachments``."""

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="attachments")
    name = models.CharField(max_length=120)
    media_type = models.CharField(max_length=20)
    sha256 = models.CharField(max_length=64)
    content = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["dialog", "sha256"], name="attachment_unique")]

    def __str__(self) -> str:
        return f"{self.name} ({self.media_type})"
