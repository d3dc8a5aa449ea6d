"""The part of a dialog's row that a worker needs to drive it."""

from decimal import Decimal

from django.db import models

from dialogs.models.database_defaults import EMPTY_OBJECT


class Drive(models.Model):
    """The driver's columns of a dialog: the lease, what is owed, and every counter that must outlive a worker.

    A function that takes a ``Drive`` sees nothing of the conversation. ``Change`` writes these columns.
    """

    key = models.ForeignKey(
        "dialogs.ApiKey",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        help_text="whose call set it to work last, and pays for that; empty: a person",
    )
    answering_seq = models.PositiveIntegerField(null=True, help_text="the user turn that is being answered")
    continuing = models.BooleanField(default=False, help_text="a generation is owed without a message")
    requested_rewrite = models.CharField(
        max_length=16, blank=True, help_text="a rewrite or clear that a person asked for"
    )
    requested_package = models.TextField(blank=True, help_text="the re-entry package of a requested clear")
    stop_requested = models.BooleanField(default=False)
    failure = models.TextField(blank=True, help_text="why the last message failed, for people")
    damaged_at = models.DateTimeField(null=True, help_text="its rows could not be read; until the next message")

    epoch = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=120, blank=True)
    lease_until = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True, help_text="not to be driven before, after a provider's backoff")

    crashes = models.PositiveSmallIntegerField(default=0, help_text="lost attempts in a row")
    tries = models.PositiveSmallIntegerField(default=0, help_text="failed tries in a row for what is owed now")
    repeats = models.JSONField(
        default=dict,
        db_default=EMPTY_OBJECT,
        help_text="kinds of refusal that the attempt now owed was repeated for, each with what was learned",
    )
    restarts = models.PositiveSmallIntegerField(default=0, help_text="rewrites since the newest user message")
    generations_for_message = models.PositiveIntegerField(default=0, help_text="bounds the tool loop")
    running_call = models.CharField(max_length=120, blank=True, help_text="a tool call whose effect cannot be repeated")

    cost_usd = models.DecimalField(
        max_digits=18,
        decimal_places=10,
        default=Decimal(0),
        db_default=Decimal(0),
        help_text="of all its generations whose cost is known",
    )
    unpriced_generations = models.PositiveIntegerField(
        default=0, db_default=0, help_text="ended without a known cost: no report, or no price"
    )

    # Annotated where the row is locked, because only the database's clock can say so.
    lease_over: bool
    awake: bool

    class Meta:
        abstract = True

    @property
    def is_leased(self) -> bool:
        return bool(self.lease_owner)

    @property
    def has_work(self) -> bool:
        """Check whether there is something to drive besides queued messages."""
        return self.answering_seq is not None or self.continuing or bool(self.requested_rewrite)

    def count_from_zero(self) -> None:
        """Forget the counts, lessons and waits of the message before."""
        self.failure, self.damaged_at, self.wake_at = "", None, None
        self.restarts = self.tries = self.generations_for_message = self.crashes = 0
        self.repeats = {}
