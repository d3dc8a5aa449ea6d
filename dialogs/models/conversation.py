"""A dialog and its turns."""

import uuid
from collections.abc import Collection
from decimal import Decimal
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models.base import ModelState
from django.db.models.functions import Coalesce, Now
from django.db.models.signals import post_init
from django.utils.translation import gettext as _

from dialogs import permissions
from dialogs.models.agents import Agent
from dialogs.models.context_state import ContextState
from dialogs.models.drive import Drive
from dialogs.models.known_costs import sum_of_costs
from dialogs.models.settings import PersonSettings, SiteSettings
from dialogs.state import State
from remediation.spending import is_amount


class DialogQuerySet(models.QuerySet["Dialog"]):
    def for_user(self, user: User) -> "DialogQuerySet":
        """Return the dialogs that this person may see: all with the permission, or else those they take part in."""
        return self if permissions.reach_of(user).all else self.shared_with(user)

    def shared_with(self, user: User) -> "DialogQuerySet":
        """Return a person's own dialogs and those of their groups."""
        return self.filter(permissions.within(user.pk, permissions.reach_of(user).groups))

    def newest_first(self, *, everybody: bool) -> "DialogQuerySet":
        """Sort by activity. The index is used only for everybody's dialogs, and one person's are sorted.

        For one person PostgreSQL would read the index backwards until it met enough of their dialogs: the whole index,
        if the person was away for long.
        """
        at = models.F("active_at") if everybody else Coalesce("active_at", "created_at")
        return self.order_by(at.desc(), "pk")

    def whole(self) -> "DialogQuerySet":
        """Join what each step of a worker needs: agent and client, whether there are pending calls and reminders, the
        owner's budget, and whether a webhook is to be told.
        """
        replies = Turn.objects.filter(
            dialog=models.OuterRef("pk"),
            round_number=models.OuterRef("round_number"),
            role=Turn.Role.ASSISTANT,
            status=Turn.Status.COMPLETE,
        )
        columns: dict[str, Any] = {
            "newest_reply_calls": models.Subquery(
                replies.order_by("-seq").values(calls=models.Q(tool_calls__isnull=False))[:1]
            ),
            "monthly_budget_usd": models.Subquery(
                PersonSettings.objects.filter(user=models.OuterRef("owner")).values("monthly_budget_usd")
            ),
            "has_reminders": models.Exists(Reminder.objects.filter(dialog=models.OuterRef("pk"))),
            "has_webhook": models.Exists(SiteSettings.objects.exclude(webhook_url="")),
        }
        return self.select_related("agent", "client").annotate(**columns)


_AnyDialogs = models.Manager.from_queryset(DialogQuerySet)


class DialogManager(_AnyDialogs["Dialog"]):
    """The dialogs that exist. Removed ones still count in sums, through their generations."""

    def get_queryset(self) -> "models.QuerySet[Dialog]":
        return super().get_queryset().filter(removed_at__isnull=True)


class DeletedDialogManager(_AnyDialogs["Dialog"]):
    """The dialogs that their owners have deleted and can still bring back."""

    def get_queryset(self) -> "models.QuerySet[Dialog]":
        return super().get_queryset().filter(removed_at__isnull=False, expires_at__isnull=False)


class Dialog(Drive, ContextState):
    """A conversation. ``state`` always equals ``dialogs.state.state_of`` of its rows.

    The row also holds the columns of the driver and of the context, since one change writes all three at once.
    """

    class Origin(models.TextChoices):
        PERSON = "person", "people"
        KEY = "key", "programs"
        AGENT = "agent", "agents"  # opened by an agent's call; shown in that call's dialog and in no list
        # A program's request for a title or the like, which is no conversation.
        BACKGROUND = "background", "background prompts"

    UNLISTED = (Origin.AGENT, Origin.BACKGROUND)  # left out of people's lists unless they ask for them

    # The columns that most changes write stand first, beside the worker's: PostgreSQL logs a changed row from its first
    # changed byte to its last.
    round_number = models.PositiveIntegerField(default=1)
    state = models.CharField(
        max_length=10, choices=[(state.value, state.value) for state in State], default=State.IDLE.value
    )
    created_at = models.DateTimeField(db_default=Now())
    active_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True, blank=True)
    last_turn_seq = models.PositiveIntegerField(default=0)
    last_position = models.PositiveIntegerField(default=0)
    last_event_seq = models.PositiveIntegerField(default=0)
    history_version = models.PositiveIntegerField(default=0, help_text="grows with every rewrite, undo and clear")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="dialogs", db_index=False
    )
    group = models.ForeignKey(
        Group,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="dialogs",
        db_index=False,
        help_text="whose members may read it and act in it",
    )
    link = models.UUIDField(null=True, help_text="of the address at which anybody may read it; empty: there is none")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="dialogs", db_index=False)
    title = models.CharField(max_length=200, blank=True)
    awaits_title = models.BooleanField(
        default=False, db_default=False, help_text="the model is to write its title after the first answer"
    )
    pinned_at = models.DateTimeField(null=True, help_text="kept at the top of its owner's navigation")
    folder = models.CharField(  # noqa: DJ001 - null, for the condition of its index
        max_length=60, null=True, help_text="of its owner's navigation; empty: in none"
    )
    provider = models.CharField(
        max_length=80, blank=True, help_text="overrides the agent's, after a move to another model"
    )
    model = models.CharField(max_length=120, blank=True)
    origin = models.CharField(
        max_length=10,
        choices=Origin.choices,
        default=Origin.PERSON,
        db_default=Origin.PERSON,
        help_text="who opened it",
    )
    context_policy = models.CharField(
        max_length=16, blank=True, default="", db_default="", help_text="overrides the agent's, by the newest request"
    )
    archived_at = models.DateTimeField(null=True, help_text="put away by its owner, until the next message")
    expires_at = models.DateTimeField(null=True, help_text="what was said in it is removed then; empty: never")
    # Set with expires_at: deleted by its owner, who can bring it back until then.
    removed_at = models.DateTimeField(null=True, help_text="expired: nothing but the numbers of its calls is left")
    forked_from = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.SET_NULL,
        related_name="forks",
        db_index=False,
        help_text="the dialog that it branches off",
    )
    own_from = models.PositiveIntegerField(
        default=1, db_default=1, help_text="the position of its first own turn; those before it were copied"
    )
    fork_count = models.PositiveIntegerField(default=0, db_default=0, help_text="dialogs that branch off this one")

    budget_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True, help_text="raised by a person; empty: the agent's"
    )

    source = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="of an imported dialog: the conversation that it was, elsewhere",
    )

    # Annotated by ``whole``. Until then calls and reminders may exist, and have to be looked up.
    newest_reply_calls: bool | None = True
    has_reminders: bool = True
    monthly_budget_usd: Decimal | None = None
    has_webhook: bool = False

    objects = DialogManager()
    deleted = DeletedDialogManager()

    class Meta:
        permissions = list(permissions.ALL.items())
        indexes = [
            # Most updates of a row write to each of these indexes. Foreign keys have none of their own: the owner's
            # would be a second one, and the agent's, a text, would be two.
            models.Index(fields=["owner", "-active_at"], name="dialog_recent"),
            models.Index(fields=["agent"], name="dialog_of_agent"),
            models.Index(
                fields=["forked_from"], condition=models.Q(forked_from__isnull=False), name="dialog_branched_off"
            ),
            models.Index(fields=["-active_at"], name="dialog_newest"),  # the list of everybody's dialogs
            models.Index(fields=["created_at", "id"], name="dialog_oldest"),  # the order of /api/dialogs
            models.Index(fields=["expires_at"], name="dialog_expiring", condition=models.Q(expires_at__isnull=False)),
            models.Index(fields=["owner"], condition=models.Q(pinned_at__isnull=False), name="dialog_pinned"),
            models.Index(fields=["owner"], condition=models.Q(folder__isnull=False), name="dialog_in_folder"),
            models.Index(fields=["group"], condition=models.Q(group__isnull=False), name="dialog_shared"),
            models.Index(fields=["link"], condition=models.Q(link__isnull=False), name="dialog_linked"),
            models.Index(fields=["state"], name="dialog_by_state"),  # renewing a lease must touch no index
        ]
        constraints = [
            models.UniqueConstraint(fields=["owner", "source"], condition=~models.Q(source=""), name="imported_once")
        ]

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **_: object) -> Self:
        """Make a dialog from a row.

        Django's own sets 67 attributes one by one, which takes 0.1 ms for the five rows that a turn reads.
        Receivers of ``post_init`` are called as usual.
        """
        dialog, state = cls.__new__(cls), ModelState()
        state.adding, state.db = False, db
        vars(dialog).update(zip(field_names, values, strict=True), _state=state)
        post_init.send(sender=cls, instance=dialog)
        return dialog

    def __str__(self) -> str:
        if self.title:
            return self.title
        if "agent" not in self._state.fields_cache:  # reading the agent would cost a query for each row of a list
            return _("Dialog") if self.last_turn_seq else _("New dialog")
        name = _("Dialog with {agent}") if self.last_turn_seq else _("New dialog with {agent}")
        return name.format(agent=self.agent)

    @property
    def provider_id(self) -> str:
        return self.provider or self.agent.provider

    @property
    def model_id(self) -> str:
        return self.model or self.agent.model

    @property
    def all_placed(self) -> bool:
        """Check whether every turn has a place in the conversation, so that none is queued. False proves nothing, since
        a queued message may have been taken back.
        """
        return self.last_turn_seq == self.last_position

    @property
    def chosen_policy(self) -> str:
        """Return the name of the chosen context policy, or an empty text."""
        return self.context_policy or self.agent.context_policy

    @property
    def known_cost(self) -> Decimal:
        """Return what the dialog has cost in USD; where its own sum is damaged, the sum of its calls."""
        if is_amount(self.cost_usd):
            return self.cost_usd
        usd: Decimal = self.generations.aggregate(usd=sum_of_costs())["usd"]
        return usd

    @property
    def budget_in_force(self) -> Decimal | None:
        """Return what the dialog may cost in USD; None for no limit."""
        return self.agent.dialog_budget_usd if self.budget_usd is None else self.budget_usd


class TurnQuerySet(models.QuerySet["Turn"]):
    def queued(self) -> "TurnQuerySet":
        """Return the waiting messages. They have no position yet, by which an index finds them."""
        return self.filter(status=Turn.Status.QUEUED, position__isnull=True)


class Turn(models.Model):
    """One append-only entry of a dialog. ``seq`` is its address. ``position`` is its place in the conversation, which a
    queued message gets when its turn comes.
    """

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        NOTICE = "notice"

    class Status(models.TextChoices):
        # user turns: each ends exactly once
        QUEUED = "queued"
        ANSWERING = "answering"
        ANSWERED = "answered"
        FAILED = "failed"
        STOPPED = "stopped"  # also the status of an assistant turn that a person cut off
        SUPERSEDED = "superseded"
        SUSPENDED = "suspended"
        # assistant turns
        COMPLETE = "complete"
        INTERRUPTED = "interrupted"  # cut at 90 % for compaction; the answer goes on in the next turn
        # tool turns
        OK = "ok"
        ERROR = "error"
        UNKNOWN = "unknown"  # the worker died while it ran

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="turns")
    seq = models.PositiveIntegerField()
    position = models.PositiveIntegerField(null=True)
    round_number = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=Role.choices)
    status = models.CharField(max_length=12, choices=Status.choices)
    text = models.TextField(blank=True)
    tool_calls = models.JSONField(null=True, help_text="[{id, name, arguments}], arguments as the model wrote them")
    tool_call_id = models.CharField(max_length=120, blank=True)
    tool_name = models.CharField(max_length=120, blank=True)  # of a user turn: the tool that brought an agent's words
    provider_items = models.JSONField(null=True)
    attachments = models.JSONField(
        null=True,
        help_text="[{name, media_type, sha256, bytes, width, height}] of images; a text file has chars instead",
    )
    reasoning = models.JSONField(
        null=True, help_text="{text, ms}: what the model thought, as far as it was shown, and from first to last word"
    )
    client_message_id = models.CharField(max_length=120, null=True)  # noqa: DJ001  null: no client sent it; else unique
    generation = models.ForeignKey(
        "dialogs.Generation", null=True, on_delete=models.PROTECT, related_name="turns", db_index=False
    )
    liked = models.BooleanField(null=True, help_text="what a person thinks of the answer; empty: nobody said")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        db_index=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the person who wrote or did it; none: an agent, the runtime, or not known",
    )
    created_at = models.DateTimeField(db_default=Now())

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ["seq"]
        constraints = [
            models.UniqueConstraint(fields=["dialog", "seq"], name="turn_seq_unique"),
            models.UniqueConstraint(fields=["dialog", "client_message_id"], name="turn_client_message_unique"),
        ]
        # No index has the status, so that a change of the status touches none of them.
        indexes = [
            models.Index(fields=["dialog", "position"], name="turn_position"),
            models.Index(
                fields=["generation"], condition=models.Q(generation__isnull=False), name="turn_of_generation"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"


class Reminder(models.Model):
    """A note that the agent keeps in sight, as a part of every request in all rounds."""

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="reminders")
    position = models.PositiveSmallIntegerField()
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return self.text[:60]
