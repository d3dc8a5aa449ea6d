"""What requests are made of."""

from django.db import models


class RequestPart(models.Model):
    """What many requests have in common, stored once: instructions, tools, a model's settings, reminders as stated. Never
    guidance: that is made again from its prompt."""

    digest = models.CharField(primary_key=True, max_length=32)
    text = models.TextField()

    def __str__(self) -> str:
        return self.digest
