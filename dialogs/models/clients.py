"""Keys of programs, and the dialogs that belong to clients of ``/v1``."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from dialogs.models.conversation import Dialog


class ApiKey(models.Model):
    """A person's API key, stored as a hash and shown once."""

    class Scope(models.TextChoices):
        ALL = "all", _("everything that its owner can do")
        V1 = "v1", _("agents as models, by /v1")
        READ = "read", _("reading, by /api and /mcp")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    last_four = models.CharField(max_length=4)
    created_at = models.DateTimeField(db_default=Now())
    revoked_at = models.DateTimeField(null=True, blank=True)
    scope = models.CharField(max_length=4, choices=Scope.choices, default=Scope.ALL, db_default=Scope.ALL)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="refused from then on; empty: never")
    keep_days = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="dialogs that it makes are removed so long after their last message; empty: never",
    )
    budget_usd = models.DecimalField(
        max_digits=18,
        decimal_places=10,
        null=True,
        blank=True,
        help_text="what its calls may cost in a calendar month; empty: no budget",
    )
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="noted once a minute at most")

    def __str__(self) -> str:
        return f"…{self.last_four}"


class Client(models.Model):
    """The client's side of a ``/v1`` dialog: its key, and what came with its newest request."""

    dialog = models.OneToOneField(Dialog, on_delete=models.PROTECT, primary_key=True, related_name="client")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+")
    # Processes of 0.1.0 write the column by its old name while they are replaced.
    messages_digest = models.CharField(
        max_length=64, db_column="said", help_text="of the user's messages, to find the dialog again"
    )
    first = models.CharField(max_length=64, default="", db_default="", help_text="digest of the first of them")
    newest = models.CharField(max_length=64, default="", db_default="", help_text="digest of the newest of them")
    answer_digest = models.CharField(
        max_length=64, default="", db_default="", help_text="of the answer that it got last"
    )
    end_user = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="whom it speaks for, as it says"
    )
    instructions = models.TextField(blank=True, help_text="its system messages; they follow the agent's instructions")
    system_messages = models.JSONField(
        null=True, help_text="those in the middle of the conversation: [[seq of the turn before it, text]]"
    )
    tools = models.JSONField(default=list, help_text="[{name, description, parameters}], run on its side")
    required_tool = models.CharField(
        max_length=120, blank=True, help_text="the tool that the next answer must call; * is any of them"
    )
    params = models.JSONField(null=True, help_text="settings for the model, in the words of chat completions")

    class Meta:
        indexes = [
            models.Index(fields=["key", "messages_digest"], name="client_conversation"),
            models.Index(fields=["key", "first"], name="client_first"),
            models.Index(fields=["key", "newest"], name="client_newest"),
            models.Index(fields=["key", "answer_digest"], name="client_answer"),
        ]

    def __str__(self) -> str:
        return f"Client of {self.dialog_id}"


class EmbeddingUse(models.Model):
    """The embeddings of one person's key in one quarter of an hour, of which nothing else is stored."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False, related_name="+")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+")
    began_at = models.DateTimeField(
        help_text="of the quarter; noon of a day of UTC that an older version summed up whole"
    )
    agent = models.CharField(max_length=80)
    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=18, decimal_places=10, default=0)
    unpriced = models.PositiveIntegerField(default=0, help_text="calls without a report or a known price")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["person", "key", "began_at", "agent", "provider", "model"], name="embedding_use_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.calls:,} from {self.began_at:%Y-%m-%d %H:%M} UTC"
