"""Model calls."""

from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from dialogs.models.conversation import Dialog
from dialogs.models.database_defaults import EMPTY_LIST


class GenerationQuerySet(models.QuerySet["Generation"]):
    def newest_of(self, dialog_id: UUID) -> "GenerationQuerySet":
        """Return a dialog's calls, newest first, by their index.

        Ordered by id alone, PostgreSQL may read the calls of all dialogs from the newest back to those of an old one.
        It drops a column that equals a constant from the order, so the filter is a range of one dialog.
        """
        return self.filter(dialog__gte=dialog_id, dialog__lte=dialog_id).order_by("dialog_id", "-id")


class Generation(models.Model):
    """One model call, kept or not. Columns of usage are null where the provider reported none."""

    class Purpose(models.TextChoices):
        REPLY = "reply"
        FORCED_CLEAR = "forced_clear"
        PRUNE = "prune"
        SUMMARY = "summary"
        TITLE = "title"

    class Outcome(models.TextChoices):
        RUNNING = "running"
        KEPT = "kept"
        DISCARDED = "discarded"
        FAILED = "failed"
        STOPPED = "stopped"
        CRASHED = "crashed"

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="generations")
    key = models.ForeignKey(
        "dialogs.ApiKey",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        help_text="that pays for it; empty: none",
    )
    round_number = models.PositiveIntegerField()
    purpose = models.CharField(max_length=12, choices=Purpose.choices)
    attempt = models.PositiveSmallIntegerField(default=1, help_text="k of a forced clear, or the try of a reply")
    epoch = models.PositiveIntegerField()
    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    answers_seq = models.PositiveIntegerField(null=True, help_text="the user turn it works for")
    guided = models.BooleanField(default=False)
    clear_episode = models.PositiveIntegerField(null=True)
    frame = models.CharField(max_length=32, blank=True, help_text="hash of model, instructions, tools and reminders")
    base = models.CharField(max_length=40, blank=True, help_text="the round and rewrite that its messages start from")
    sent = models.JSONField(null=True, help_text="hash of its request, and what it is made again from: see Sent")
    recalled = models.JSONField(
        default=list, db_default=EMPTY_LIST, help_text="seqs of the turns that its request brought back into sight"
    )
    request_chars = models.PositiveIntegerField(default=0)
    est_tokens = models.PositiveIntegerField(
        null=True, help_text="of the whole prompt, as pages told before it was sent"
    )
    est_prompt_tokens = models.PositiveIntegerField(null=True, help_text="as counted, before any correction")
    est_tools_tokens = models.PositiveIntegerField(null=True, help_text="of est_prompt_tokens")
    cursor = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(db_default=Now())
    # The columns that a call's end writes stand last: PostgreSQL logs a changed row from its first changed byte on.
    outcome = models.CharField(max_length=10, choices=Outcome.choices, default=Outcome.RUNNING)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    total_tokens = models.PositiveIntegerField(null=True)
    cache_read_tokens = models.PositiveIntegerField(
        null=True, help_text="of the prompt, read from the provider's cache"
    )
    cache_write_tokens = models.PositiveIntegerField(null=True, help_text="of the prompt, written to it")
    reasoning_tokens = models.PositiveIntegerField(null=True, help_text="of the completion")
    cost_usd = models.DecimalField(
        max_digits=18,
        decimal_places=10,
        null=True,
        help_text="by the reported tokens and the catalog's price of that day; empty where either is unknown",
    )
    finish_reason = models.CharField(max_length=40, blank=True)
    skipped_calls = models.PositiveSmallIntegerField(default=0, help_text="calls beside an accepted clear, not run")
    error_kind = models.CharField(max_length=24, blank=True)
    error = models.TextField(blank=True)
    provider_fields = models.JSONField(
        null=True, help_text="what else the provider said, for programs: HTTP status of a refusal, fields of an answer"
    )
    first_token_ms = models.PositiveIntegerField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = GenerationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["dialog", "-id"], name="generation_newest"),
            models.Index(fields=["key", "started_at"], condition=models.Q(key__isnull=False), name="generation_by_key"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(outcome="running"), name="one_running_generation_per_dialog"
            )
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.outcome}"


class CallTotals(models.Model):
    """Sums of the calls that one person began in one quarter of an hour, by agent and model.

    The sweeper makes them when a day (UTC) is over and its rows no longer change. Statistics read them instead of the
    calls. In every time zone days begin at a quarter of an hour; sums by the hour would not fit India's, at half past.
    """

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="+"
    )
    began_at = models.DateTimeField(
        help_text="of the quarter; noon of a day of UTC that an older version summed up whole"
    )
    agent = models.CharField(max_length=80)
    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    calls = models.PositiveIntegerField()
    prompt_tokens = models.PositiveBigIntegerField()
    cache_read_tokens = models.PositiveBigIntegerField()
    completion_tokens = models.PositiveBigIntegerField()
    cost_usd = models.DecimalField(max_digits=18, decimal_places=10)
    unpriced = models.PositiveIntegerField(help_text="calls without a report or a known price")

    class Meta:
        verbose_name_plural = "call totals"
        constraints = [
            models.UniqueConstraint(
                fields=["began_at", "person", "agent", "provider", "model"], name="call_totals_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.calls:,} from {self.began_at:%Y-%m-%d %H:%M} UTC"
