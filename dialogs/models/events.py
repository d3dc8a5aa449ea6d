"""Events of a dialog, in the order in which pages and programs hear of them."""

from django.db import models
from django.db.models.functions import Now

from dialogs.models.conversation import Dialog


class Event(models.Model):
    """What happened, numbered per dialog without gaps. ``data`` holds references; texts are read from their rows.

    ``more`` holds the events that followed this one and have no rows of their own: see ``dialogs.store.events``.
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
