"""The rows. Columns and predicates on them only: what changes them lives in the services beside this module."""

import uuid
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now

from dialogs import permissions
from dialogs.permissions import VIEW_ALL, may
from dialogs.state import State
from dominds import outbound_http


class Agent(models.Model):
    """Who answers. Synchronised from ``team.yaml``, or made in the admin under the same validation."""

    class CriticalPolicy(models.TextChoices):
        ESCALATE = "escalate"
        COUNTDOWN = "countdown"

    id = models.SlugField(primary_key=True, max_length=64)
    name = models.CharField(max_length=120)
    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    instructions = models.TextField(blank=True)
    tools = models.JSONField(
        default=list, blank=True, help_text="names of the tools offered beside memory and ask_human"
    )
    toolsets = models.JSONField(
        default=list, blank=True, help_text="workspace, or ids of MCP servers; * is all of them, !name leaves one out"
    )
    model_params = models.JSONField(
        default=dict, blank=True, help_text="settings for the model, by kind of API or under general"
    )
    context_policy = models.CharField(
        max_length=16, blank=True, help_text="the name of a policy; empty: the default of the model's kind"
    )
    critical_policy = models.CharField(max_length=12, choices=CriticalPolicy.choices, default=CriticalPolicy.ESCALATE)
    context_limit = models.PositiveIntegerField(
        null=True, blank=True, help_text="its budget in tokens, for policies that keep to one"
    )
    dialog_budget_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True, blank=True,
        help_text="what one dialog may cost before a person is asked; empty: no budget",
    )  # fmt: skip
    llm_type = models.CharField(max_length=40, blank=True)
    priority = models.PositiveSmallIntegerField(default=2, choices=[(1, "1"), (2, "2"), (3, "3")])
    priority_areas = models.JSONField(default=list, blank=True)
    recall = models.BooleanField(
        default=True, help_text="bring back into a request what is out of sight and bears on the newest message"
    )
    is_default = models.BooleanField(default=False)
    is_demo = models.BooleanField(default=False)
    is_listed = models.BooleanField(
        default=False, editable=False, help_text="named by team.yaml, or by the demo team, at the last synchronisation"
    )
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name or self.id


class DialogQuerySet(models.QuerySet["Dialog"]):
    def for_user(self, user: User) -> "DialogQuerySet":
        """The dialogs that this person may see: their own, or all with the permission."""
        return self if may(user, VIEW_ALL) else self.filter(owner=user)

    def whole(self) -> "DialogQuerySet":
        """With what a worker looks up for each step: agent and client, whether there are calls to run and reminders, and
        the owner's budget."""
        replies = Turn.objects.filter(
            dialog=models.OuterRef("pk"), round_number=models.OuterRef("round_number"),
            role=Turn.Role.ASSISTANT, status=Turn.Status.COMPLETE,
        )  # fmt: skip
        told: dict[str, Any] = {
            "newest_reply_calls": models.Subquery(
                replies.order_by("-seq").values(calls=models.Q(tool_calls__isnull=False))[:1]
            ),
            "monthly_budget_usd": models.Subquery(
                PersonSettings.objects.filter(user=models.OuterRef("owner")).values("monthly_budget_usd")
            ),
            "has_reminders": models.Exists(Reminder.objects.filter(dialog=models.OuterRef("pk"))),
        }
        return self.select_related("agent", "client").annotate(**told)


class Dialog(models.Model):
    """A conversation. ``state`` equals ``dialogs.state.state_of`` of its rows; services keep it so.

    The columns from ``epoch`` on are the driver's: the lease, and every counter that must outlive a worker.
    """

    class Report(models.TextChoices):
        """What the last generation that counts for health told us."""

        AWAITING = "awaiting"
        REPORTED = "reported"
        UNAVAILABLE = "unavailable"
        SUSPECTED = "suspected"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="dialogs")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="dialogs")
    title = models.CharField(max_length=200, blank=True)
    provider = models.CharField(
        max_length=80, blank=True, help_text="overrides the agent's, after a move to another model"
    )
    model = models.CharField(max_length=120, blank=True)
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

    archived_at = models.DateTimeField(null=True, help_text="put away by its owner, until the next message")

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
    generations_for_message = models.PositiveIntegerField(default=0, help_text="bounds the tool loop")
    running_call = models.CharField(max_length=120, blank=True, help_text="a tool call whose effect cannot be repeated")

    report = models.CharField(max_length=12, choices=Report.choices, default=Report.AWAITING)
    prompt_tokens = models.PositiveIntegerField(null=True, help_text="last reported")
    completion_tokens = models.PositiveIntegerField(null=True)
    total_tokens = models.PositiveIntegerField(null=True)
    overflowed = models.BooleanField(default=False, help_text="the provider refused the last request as too long")
    context_epoch = models.PositiveIntegerField(
        default=0,
        help_text="grows when what was sent before comes to stand otherwise: earlier reasoning is not sent then",
    )
    beginning = models.CharField(
        max_length=32, blank=True, help_text="hash of model, instructions, tools and rewrite that the epoch began with"
    )
    statements = models.JSONField(
        default=list, help_text="reminders as stated in this epoch: [messages of the view before them, their lines]"
    )
    repeats = models.JSONField(
        default=dict,
        help_text="kinds of refusal that the attempt now owed was repeated for, each with what was learned",
    )
    changed_since_rewrite = models.BooleanField(default=True)
    restarts = models.PositiveSmallIntegerField(default=0, help_text="rewrites since the newest user message")
    calibration = models.FloatField(null=True, help_text="of older dialogs: reported over estimated prompt tokens")
    calibration_fit = models.JSONField(null=True, help_text="what reports taught of the model: Calibration.numbers")
    kept_since_guidance = models.PositiveIntegerField(null=True)
    guided_generations = models.PositiveSmallIntegerField(default=0)
    failed_clears = models.PositiveSmallIntegerField(default=0)
    clear_episode = models.PositiveIntegerField(default=0)
    clear_unproven = models.BooleanField(
        default=False, help_text="cleared, and no report since has shown that it helped"
    )

    cost_usd = models.DecimalField(
        max_digits=18, decimal_places=10, default=Decimal(0), db_default=Decimal(0),
        help_text="of all its generations whose cost is known",
    )  # fmt: skip
    unpriced_generations = models.PositiveIntegerField(
        default=0, db_default=0, help_text="ended without a known cost: no report, or no price"
    )
    budget_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True, help_text="raised by a person; empty: the agent's"
    )

    lease_over: bool  # annotated where the row is locked: the database's clock says so
    awake: bool
    newest_reply_calls: bool | None = True  # annotated where the row is read whole; elsewhere it may be so
    has_reminders: bool = True
    monthly_budget_usd: Decimal | None = None

    objects = DialogQuerySet.as_manager()

    class Meta:
        permissions = list(permissions.ALL.items())
        indexes = [
            models.Index(fields=["owner", "-active_at"], name="dialog_recent"),
            models.Index(fields=["state"], name="dialog_by_state"),  # no more: a renewed lease is to touch no index
        ]

    def __str__(self) -> str:
        return self.title or f"Dialog {str(self.id)[:8]}"

    @property
    def provider_id(self) -> str:
        return self.provider or self.agent.provider

    @property
    def model_id(self) -> str:
        return self.model or self.agent.model

    @property
    def budget_in_force(self) -> Decimal | None:
        """USD that it may cost; None: as much as it will."""
        return self.agent.dialog_budget_usd if self.budget_usd is None else self.budget_usd

    @property
    def is_leased(self) -> bool:
        return bool(self.lease_owner)

    @property
    def has_work(self) -> bool:
        """Whether there is something to drive besides queued messages."""
        return self.answering_seq is not None or self.continuing or bool(self.requested_rewrite)


class Round(models.Model):
    """A stretch between clears. The model sees its package, then its ``carried`` user turns, then its own turns."""

    class Cause(models.TextChoices):
        START = "start"
        CLEAR_MIND = "clear_mind"
        PERSON = "person"
        COUNTDOWN = "countdown"

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    cause = models.CharField(max_length=12, choices=Cause.choices)
    package = models.TextField(blank=True, help_text="the re-entry package it began with")
    carried = models.JSONField(default=list, help_text="seqs of unanswered user turns, oldest first")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["dialog", "number"], name="round_number_unique")]

    def __str__(self) -> str:
        return f"Round {self.number}"


class Generation(models.Model):
    """One model call, kept or not. Usage columns are null when the provider reported none."""

    class Purpose(models.TextChoices):
        REPLY = "reply"
        FORCED_CLEAR = "forced_clear"
        PRUNE = "prune"
        SUMMARY = "summary"

    class Outcome(models.TextChoices):
        RUNNING = "running"
        KEPT = "kept"
        DISCARDED = "discarded"
        FAILED = "failed"
        STOPPED = "stopped"
        CRASHED = "crashed"

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="generations")
    round_number = models.PositiveIntegerField()
    purpose = models.CharField(max_length=12, choices=Purpose.choices)
    outcome = models.CharField(max_length=10, choices=Outcome.choices, default=Outcome.RUNNING)
    attempt = models.PositiveSmallIntegerField(default=1, help_text="k of a forced clear, or the try of a reply")
    epoch = models.PositiveIntegerField()
    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    answers_seq = models.PositiveIntegerField(null=True, help_text="the user turn it works for")
    guided = models.BooleanField(default=False)
    clear_episode = models.PositiveIntegerField(null=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    total_tokens = models.PositiveIntegerField(null=True)
    cache_read_tokens = models.PositiveIntegerField(
        null=True, help_text="of the prompt, read from the provider's cache"
    )
    cache_write_tokens = models.PositiveIntegerField(null=True, help_text="of the prompt, written to it")
    reasoning_tokens = models.PositiveIntegerField(null=True, help_text="of the completion")
    cost_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True,
        help_text="by the reported tokens and the catalog's price of that day; empty where either is unknown",
    )  # fmt: skip
    frame = models.CharField(max_length=32, blank=True, help_text="hash of model, instructions, tools and reminders")
    base = models.CharField(max_length=40, blank=True, help_text="the round and rewrite that its messages start from")
    recalled = models.JSONField(default=list, help_text="seqs of the turns that its request brought back into sight")
    request_chars = models.PositiveIntegerField(default=0)
    est_prompt_tokens = models.PositiveIntegerField(null=True)
    est_tools_tokens = models.PositiveIntegerField(null=True, help_text="of est_prompt_tokens")
    cursor = models.CharField(max_length=200, blank=True)
    finish_reason = models.CharField(max_length=40, blank=True)
    skipped_calls = models.PositiveSmallIntegerField(default=0, help_text="calls beside an accepted clear, not run")
    error_kind = models.CharField(max_length=24, blank=True)
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(db_default=Now())
    first_token_ms = models.PositiveIntegerField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["dialog", "-id"], name="generation_newest")]
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(outcome="running"), name="one_running_generation_per_dialog"
            )
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.outcome}"


class ForcingRefusal(models.Model):
    """A model that refused to be made to call a tool, against what the catalog says of it."""

    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    said = models.TextField(help_text="the provider's words")
    refused_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="one_refusal_per_model")]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class TurnQuerySet(models.QuerySet["Turn"]):
    def queued(self) -> "TurnQuerySet":
        """Messages that wait. None has a position yet, and by that the index finds them."""
        return self.filter(status=Turn.Status.QUEUED, position__isnull=True)


class Turn(models.Model):
    """One append-only entry of a dialog. ``seq`` is its address; ``position`` its place in the conversation, which a queued
    message has only once it is taken."""

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
        STOPPED = "stopped"  # also an assistant turn that a person cut off
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
    tool_name = models.CharField(max_length=120, blank=True)
    provider_items = models.JSONField(null=True)
    reasoning = models.JSONField(
        null=True, help_text="{text, ms}: what the model thought, as far as it was shown, and from first to last word"
    )
    client_message_id = models.CharField(max_length=120, null=True)  # noqa: DJ001  null: not sent by a client; unique otherwise
    generation = models.ForeignKey(Generation, null=True, on_delete=models.PROTECT, related_name="turns")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, db_index=False, on_delete=models.SET_NULL, related_name="+",
        help_text="the person who wrote or did it; none: an agent, the runtime, or not known",
    )  # fmt: skip
    created_at = models.DateTimeField(db_default=Now())

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ["seq"]
        constraints = [
            models.UniqueConstraint(fields=["dialog", "seq"], name="turn_seq_unique"),
            models.UniqueConstraint(fields=["dialog", "client_message_id"], name="turn_client_message_unique"),
        ]
        # None on the status: a message whose status changes in place stays where it is in all of them.
        indexes = [models.Index(fields=["dialog", "position"], name="turn_position")]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"


class RecallChoice(models.Model):
    """What a person decided about one turn: recalled first in each request, or never in this dialog."""

    class Choice(models.TextChoices):
        PINNED = "pinned"
        DISMISSED = "dismissed"

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="recall_choices")
    seq = models.PositiveIntegerField(help_text="of the turn")
    choice = models.CharField(max_length=10, choices=Choice.choices)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["dialog", "seq"], name="recall_choice_unique")]

    def __str__(self) -> str:
        return f"{self.choice} {self.seq}"


class Event(models.Model):
    """What happened, numbered per dialog without gaps. ``data`` holds references; texts are read from their rows.

    ``more`` holds the events that followed this one and have no rows of their own: see ``dialogs.store.events``.
    """

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, db_index=False, related_name="events")
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=24)
    data = models.JSONField(default=dict)
    more = models.TextField(
        default="",
        db_default="",
        blank=True,
        help_text="items of a JSON array, a comma before each: an event as [type, values], or the milliseconds after "
        "created_at at which those behind it happened",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["dialog", "seq"], name="event_seq_unique")]

    def __str__(self) -> str:
        return f"{self.type} {self.seq}"


class Reminder(models.Model):
    """What the agent wants to keep in sight: part of every request, over all rounds."""

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="reminders")
    position = models.PositiveSmallIntegerField()
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return self.text[:60]


class Question(models.Model):
    """Q4H: the agent, or the runtime, needs a human."""

    class Kind(models.TextChoices):
        QUESTION = "question"
        CRITICAL = "context_health_critical"
        BUDGET = "budget_exceeded"

    class State(models.TextChoices):
        OPEN = "open"
        ANSWERED = "answered"
        RESOLVED = "resolved"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="questions")
    kind = models.CharField(max_length=24, choices=Kind.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    text = models.TextField()
    tool_call_id = models.CharField(max_length=120, blank=True)
    clear_episode = models.PositiveIntegerField(null=True)
    draft = models.TextField(blank=True, help_text="a re-entry package drafted from stored facts")
    answer = models.TextField(blank=True)
    action = models.CharField(max_length=16, blank=True, help_text="the exit taken, for the critical kind")
    created_at = models.DateTimeField(db_default=Now())
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(state="open"), name="one_open_question_per_dialog"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text[:60]}"


class ApiKey(models.Model):
    """A key of one person, stored as a hash and shown once."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    last_four = models.CharField(max_length=4)
    created_at = models.DateTimeField(db_default=Now())
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"…{self.last_four}"


class Client(models.Model):
    """The side of a dialog that a client of ``/v1`` holds: by which key, and what its newest request brought along."""

    dialog = models.OneToOneField(Dialog, on_delete=models.PROTECT, primary_key=True, related_name="client")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+")
    said = models.CharField(max_length=64, help_text="digest of the user's messages, to find the dialog again")
    instructions = models.TextField(blank=True, help_text="its system messages; they follow the agent's instructions")
    tools = models.JSONField(default=list, help_text="[{name, description, parameters}], run on its side")
    required_tool = models.CharField(max_length=120, blank=True, help_text="the tool that the next answer must call")

    class Meta:
        indexes = [models.Index(fields=["key", "said"], name="client_conversation")]

    def __str__(self) -> str:
        return f"Client of {self.dialog_id}"


class PersonSettings(models.Model):
    """How one person wants the pages."""

    class Detail(models.TextChoices):
        MINIMAL = "minimal"
        NORMAL = "normal"
        DETAILED = "detailed"

    class Theme(models.TextChoices):
        SYSTEM = "system"
        LIGHT = "light"
        DARK = "dark"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="dominds_settings")
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.SYSTEM)
    notifications = models.BooleanField(default=False)
    show_breaking_progress = models.BooleanField(default=True)
    progress_detail = models.CharField(max_length=8, choices=Detail.choices, default=Detail.NORMAL)
    auto_hide_seconds = models.PositiveSmallIntegerField(default=3)
    highlight_p1 = models.BooleanField(default=True)
    recall = models.BooleanField(default=True)
    monthly_budget_usd = models.DecimalField(
        max_digits=18, decimal_places=10, null=True, blank=True,
        help_text="what this person's dialogs may cost in a calendar month; empty: no budget",
    )  # fmt: skip

    class Meta:
        verbose_name_plural = "person settings"
        constraints = [
            models.CheckConstraint(name="auto_hide_1_to_10", condition=models.Q(auto_hide_seconds__range=(1, 10)))
        ]

    def __str__(self) -> str:
        return f"Settings of {self.user}"


class SiteSettings(models.Model):
    """What holds for everybody. At most one row; ``current()`` reads it or its defaults."""

    singleton = models.BooleanField(default=True, unique=True, editable=False)
    pruning_agent = models.ForeignKey(
        Agent,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="empty: same as current agent",
    )
    keep_discarded_outputs = models.BooleanField(default=True, help_text="in a log of their own, for 7 days")
    generation = models.CharField(
        max_length=32, blank=True, default="", db_default="", editable=False,
        help_text="of the database: another one after each restore, so that cursors of before are known as such",
    )  # fmt: skip
    webhook_url = models.URLField(blank=True, help_text="told of every new Q4H")

    class Meta:
        verbose_name_plural = "site settings"

    def __str__(self) -> str:
        return "Site settings"

    def clean(self) -> None:
        if self.webhook_url:
            try:
                outbound_http.check(self.webhook_url, allow_private=settings.PRIVATE_WEBHOOKS)
            except outbound_http.Refused as refused:
                raise ValidationError({"webhook_url": str(refused)}) from refused

    @classmethod
    def current(cls) -> "SiteSettings":
        return cls.objects.first() or cls()


class Artifact(models.Model):
    """The full text of a tool result that was too large to be seen whole; ``read_artifact`` reads it in parts."""

    dialog = models.ForeignKey(Dialog, on_delete=models.PROTECT, related_name="artifacts")
    tool_call_id = models.CharField(max_length=120)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"Artifact {self.pk}: {len(self.text):,} characters"
