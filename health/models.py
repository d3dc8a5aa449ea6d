from django.db import models

from health.levels import Level, UnknownReason


class HealthSnapshot(models.Model):
    """The fullness of the context at one generation, with the limits in force then.

    Token columns are null where the provider reported no usage. A missing number is never zero.
    """

    generation = models.OneToOneField("dialogs.Generation", on_delete=models.PROTECT, related_name="snapshot")
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    total_tokens = models.PositiveIntegerField(null=True)
    model_context_limit = models.PositiveIntegerField(null=True)
    limit_source = models.CharField(max_length=24, blank=True)
    optimal_max_tokens = models.PositiveIntegerField()
    critical_max_tokens = models.PositiveIntegerField(null=True)
    hard_util = models.FloatField(null=True)
    optimal_util = models.FloatField(null=True)
    level = models.CharField(max_length=8, choices=[(level.value, level.value) for level in Level])
    reason = models.CharField(
        max_length=24, blank=True, choices=[(reason.value, reason.value) for reason in UnknownReason]
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="snapshot_unknown_has_reason",
                condition=models.Q(level=Level.UNKNOWN.value) ^ models.Q(reason=""),
            ),
            models.CheckConstraint(name="snapshot_no_zero_prompt", condition=~models.Q(prompt_tokens=0)),
        ]

    def __str__(self) -> str:
        tokens = "unknown" if self.prompt_tokens is None else f"{self.prompt_tokens:,}"
        return f"{self.level}: {tokens} prompt tokens"
