"""The state of a dialog's context between two generations."""

from django.db import models

from dialogs.models.database_defaults import EMPTY_LIST


class ContextState(models.Model):
    """The columns of a dialog about its context: how full it is, what the model was sent, and what was done about it.

    A function that takes a ``ContextState`` sees neither the conversation nor the lease.
    """

    class Report(models.TextChoices):
        """The kind of report by which health was judged last."""

        AWAITING = "awaiting"
        REPORTED = "reported"
        UNAVAILABLE = "unavailable"
        SUSPECTED = "suspected"

    context_epoch = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="grows when what was sent before comes to stand otherwise: earlier reasoning is not sent then",
    )
    beginning = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="hash of model, instructions, tools and rewrite that the epoch began with",
    )
    statements = models.JSONField(
        default=list,
        db_default=EMPTY_LIST,
        help_text="reminders as stated in this epoch: [messages of the view before them, their lines]",
    )
    request_parts = models.JSONField(
        null=True, help_text="digests of what its newest request began with, stored as parts of requests"
    )

    report = models.CharField(max_length=12, choices=Report.choices, default=Report.AWAITING)
    prompt_tokens = models.PositiveIntegerField(null=True, help_text="last reported")
    completion_tokens = models.PositiveIntegerField(null=True)
    total_tokens = models.PositiveIntegerField(null=True)
    overflowed = models.BooleanField(default=False, help_text="the provider refused the last request as too long")

    changed_since_rewrite = models.BooleanField(default=True)
    calibration = models.FloatField(null=True, help_text="of older dialogs: reported over estimated prompt tokens")
    calibration_fit = models.JSONField(null=True, help_text="what reports taught of the model: Calibration.numbers")

    kept_since_guidance = models.PositiveIntegerField(null=True)
    guided_generations = models.PositiveSmallIntegerField(default=0)
    failed_clears = models.PositiveSmallIntegerField(default=0)
    clear_episode = models.PositiveIntegerField(default=0)
    clear_unproven = models.BooleanField(
        default=False, help_text="cleared, and no report since has shown that it helped"
    )

    class Meta:
        abstract = True
