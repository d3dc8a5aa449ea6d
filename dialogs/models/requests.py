"""Parts of requests, each stored once."""

from django.db import models

from dialogs.models.conversation import Dialog


class RequestPart(models.Model):
    """What many requests have in common, stored once: instructions, tools, a model's settings, reminders as stated. Never
    guidance: that is made again from its prompt. What somebody said belongs to its dialog and goes with it; what agents and
    models bring is shared."""

    digest = models.CharField(primary_key=True, max_length=32)
    dialog = models.ForeignKey(Dialog, null=True, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()

    def __str__(self) -> str:
        return self.digest
