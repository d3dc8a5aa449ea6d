from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from remediation.decisions import UNDO_CLEAR


class RunQuerySet(models.QuerySet["RemediationRun"]):
    def counted(self) -> "RunQuerySet":
        """Leave out undone clears and the copies that branches hold, so that each rewrite counts once."""
        return self.filter(created_at__gte=models.F("dialog__created_at")).exclude(policy=UNDO_CLEAR)


class AppliedManager(models.Manager["RemediationRun"]):
    """The rewrites that took effect. A rejected one changed nothing, and is kept only as an outcome."""

    def get_queryset(self) -> RunQuerySet:
        return RunQuerySet(self.model, using=self._db).filter(rejected="")

    def counted(self) -> RunQuerySet:
        return self.get_queryset().counted()


class RemediationRun(models.Model):
    """One rewrite of what the model sees. The turns themselves never change.

    ``rejected`` says why it did not take effect, or is empty. The manager ``objects`` leaves such rows out, and
    ``attempts`` has all.

    ``view`` lists the units that replace all turns up to ``base_position``, oldest first: ``{"turn": seq}`` for an
    unchanged turn, or ``{"id", "kind", "role", "text", "priority", "sources"}`` for text in place of the turns
    ``sources``. Later turns follow unchanged. ``removed`` names the units that are no longer seen word for word, and
    the strategies that removed or changed them; ``RemovedUnit`` has their texts.
    """

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="remediations")
    round_number = models.PositiveIntegerField()
    policy = models.CharField(max_length=16, help_text="the name of the policy whose rewrite it was")
    reason = models.CharField(max_length=200)
    steps = models.JSONField(default=list)
    est_before = models.PositiveIntegerField()
    est_after = models.PositiveIntegerField()
    est_source = models.CharField(max_length=12, blank=True)
    limit = models.PositiveIntegerField(null=True)
    base_position = models.PositiveIntegerField(help_text="the position of the last turn that the view was made from")
    view = models.JSONField()
    removed = models.JSONField()
    summary = models.TextField(blank=True)
    ledger = models.JSONField(default=list)
    recovered = models.BooleanField(default=False)
    coherence = models.FloatField(null=True)
    millis = models.FloatField(default=0)
    saving_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True, help_text="est., in each later request; empty: no price of a cache"
    )
    reread_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True, help_text="est., once: the new beginning, read without the cache"
    )
    reward = models.FloatField(null=True)
    reward_record = models.JSONField(null=True)
    prompts = models.JSONField(
        default=dict, db_default={}, help_text="versions of the prompts that models were asked with, by their names"
    )
    facts = models.JSONField(
        null=True, help_text="what became of the facts in what was removed; measured when a person looks"
    )
    undone_at = models.DateTimeField(null=True)
    undone_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    rejected = models.CharField(max_length=400, blank=True, default="", db_default="")

    objects = AppliedManager()
    attempts = models.Manager["RemediationRun"].from_queryset(RunQuerySet)()

    class Meta:
        indexes = [models.Index(fields=["dialog", "round_number", "-id"], name="remediation_latest")]

    def __str__(self) -> str:
        return f"{self.policy}: est. {self.est_before:,} → {self.est_after:,} tokens"


class RemovedUnit(models.Model):
    """One unit that a rewrite took out of the model's sight: the archive, searchable and readable."""

    run = models.ForeignKey(RemediationRun, on_delete=models.PROTECT, related_name="units")
    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="removed_units")
    unit_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    role = models.CharField(max_length=12)
    est_tokens = models.PositiveIntegerField()
    text = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["dialog", "-id"], name="archive_newest")]

    def __str__(self) -> str:
        return f"{self.unit_id} ({self.kind})"


class PreparedRewrite(models.Model):
    """The rewrite that comes next, made while its dialog rested. It replaces the oldest units of the view.

    ``key`` is a hash of all that it was made from: under another key it must not be used.
    """

    dialog = models.OneToOneField("dialogs.Dialog", on_delete=models.PROTECT, related_name="prepared_rewrite")
    key = models.CharField(max_length=64)
    covers = models.PositiveIntegerField(help_text="units of the view that it was made from, oldest first")
    content = models.JSONField(null=True, help_text="empty: none was found that gains enough")
    prompts = models.JSONField(default=dict, db_default={})

    def __str__(self) -> str:
        return f"units covered: {self.covers:,}"


class ContextEvent(models.Model):
    """An event of context management, such as a warning, an over-hit or an error, listed for the operator."""

    class Code(models.TextChoices):
        WARNING = "CONTEXT_WARNING"
        OVER_HIT = "CONTEXT_OVER_HIT"
        TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED"
        BREAKER_FAILED = "BREAKER_FAILED"
        RECOVERY_TRIGGERED = "RECOVERY_TRIGGERED"
        PRUNER_FAILED = "PRUNER_FAILED"
        LOOP_DETECTED = "LOOP_DETECTED"

    WORDS: ClassVar[dict[str, str]] = {
        Code.WARNING: gettext_noop("nearly full"),
        Code.OVER_HIT: gettext_noop("over its limit"),
        Code.TOKEN_LIMIT_EXCEEDED: gettext_noop("longer than the model takes"),
        Code.BREAKER_FAILED: gettext_noop("could not be made smaller"),
        Code.RECOVERY_TRIGGERED: gettext_noop("started afresh"),
        Code.PRUNER_FAILED: gettext_noop("no summary was written"),
        Code.LOOP_DETECTED: gettext_noop("goes round in circles"),
    }

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="context_events")
    code = models.CharField(max_length=24, choices=Code.choices)
    message = models.TextField()
    est_tokens = models.PositiveIntegerField(null=True)
    limit = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["dialog", "code", "-created_at"], name="context_event_recent")]

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def words(self) -> str:
        """Return the meaning of the code, in words for people."""
        return self.WORDS.get(self.code, self.code)


class CleanupTask(models.Model):
    """A request to the operator to look at a dialog whose context fills up again and again."""

    class State(models.TextChoices):
        OPEN = "open"
        DONE = "done"

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.PROTECT, related_name="cleanup_tasks")
    reason = models.TextField()
    state = models.CharField(max_length=4, choices=State.choices, default=State.OPEN)
    created_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True, blank=True)
    done_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(state="open"), name="one_open_cleanup_task_per_dialog"
            )
        ]

    def __str__(self) -> str:
        return f"Context Cleanup: {self.reason}"


class Proposal(models.Model):
    """A change of limits or strategies that the critic suggests and a person accepts or rejects."""

    class State(models.TextChoices):
        OPEN = "open"
        ACCEPTED = "accepted"
        REJECTED = "rejected"

    agent = models.ForeignKey(
        "dialogs.Agent", null=True, blank=True, on_delete=models.CASCADE, related_name="proposals"
    )
    kind = models.CharField(max_length=16, choices=[("limit", "limit"), ("order", "order")])
    change = models.JSONField(help_text='{"context_limit": 6000} or {"chain_order": ["summarize_old", …]}')
    grounds = models.TextField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    created_at = models.DateTimeField(db_default=Now())
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    def __str__(self) -> str:
        """Describe the change in words for people. The column may hold any JSON."""
        change = self.change if isinstance(self.change, dict) else {}
        if isinstance(limit := change.get("context_limit"), int):
            return f"Keep within {limit:,} tokens."
        order = change.get("chain_order")
        names = ", ".join(map(str, order)) if isinstance(order, list) else str(self.change)
        return f"Try in this order: {names.replace('_', ' ')}."


class ContextSettings(models.Model):
    """The operator's edits of ``context_config``, laid over ``context.yaml``. At most one row."""

    singleton = models.BooleanField(default=True, unique=True, editable=False)
    config = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "context settings"

    def __str__(self) -> str:
        return "Context settings"
