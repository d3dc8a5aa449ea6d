"""Notices to people and programs outside, in an outbox that is written with the change they are about."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from dialogs.models.questions import Question


class PushSubscription(models.Model):
    """A browser that a person wants to be notified in, as its push service knows it (Push API, RFC 8030)."""

    ADDRESS_CHARS = 1_000  # today's services use 150 to 700

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="push_subscriptions")
    address = models.CharField(max_length=ADDRESS_CHARS, unique=True)
    key = models.CharField(max_length=88, help_text="the browser's public key")
    secret = models.CharField(max_length=24, help_text="what it shares with this server")
    browser = models.CharField(max_length=60)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.browser


class Delivery(models.Model):
    """One notice to one address. ``due_at`` is empty once the notice was sent, given up, or no longer needed."""

    class Channel(models.TextChoices):
        MAIL = "mail"
        WEBHOOK = "webhook"
        PUSH = "push"

    channel = models.CharField(max_length=8, choices=Channel.choices)
    event = models.CharField(max_length=24)
    question = models.ForeignKey(Question, null=True, on_delete=models.CASCADE, related_name="deliveries")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    subscription = models.ForeignKey(PushSubscription, null=True, on_delete=models.CASCADE, related_name="+")
    body = models.TextField(
        blank=True,
        help_text="until it was sent, a webhook's JSON, or the address of a mail to nobody who is known; others are "
        "written when they are sent",
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

    @property
    def is_reminder(self) -> bool:
        return self.event == "question.overdue"
