"""Notices to people and programs outside: an outbox, written with the change that they are about."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from dialogs.models.questions import Question


class Delivery(models.Model):
    """One notice to one address. ``due_at`` is empty once it was sent, given up, or no longer needed."""

    class Channel(models.TextChoices):
        MAIL = "mail"
        WEBHOOK = "webhook"

    channel = models.CharField(max_length=8, choices=Channel.choices)
    event = models.CharField(max_length=24)
    question = models.ForeignKey(Question, null=True, on_delete=models.CASCADE, related_name="deliveries")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    body = models.TextField(
        blank=True, help_text="JSON for a webhook, until it was sent; mails are written when they are sent"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(null=True, db_default=Now())
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, help_text="of the last try")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(due_at__isnull=False), name="deliveries_that_are_due")
        ]

    def __str__(self) -> str:
        return f"{self.event} by {self.channel}"
