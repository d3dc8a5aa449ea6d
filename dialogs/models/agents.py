"""Agents, the providers and tool servers that were connected on the page, and models that cannot be forced to call a
tool."""

from typing import Any

from django.db import models
from django.db.models.functions import Now

from dialogs.models.agent_kinds import ASSISTANT, PROXY, AgentKind
from dialogs.models.database_defaults import EMPTY_LIST, EMPTY_OBJECT


class Agent(models.Model):
    """An agent, which answers in dialogs. It comes from ``team.yaml``, or from the pages under the same validation."""

    class CriticalPolicy(models.TextChoices):
        ESCALATE = "escalate"
        COUNTDOWN = "countdown"

    class ToolApproval(models.TextChoices):
        NEVER = "never"
        CHANGES = "changes"
        ALWAYS = "always"

    id = models.SlugField(primary_key=True, max_length=64)
    name = models.CharField(max_length=120)
    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    description = models.CharField(
        max_length=200, blank=True, db_default="", help_text="what it is good for, in the choice of agents"
    )
    suggestions = models.JSONField(
        default=list, db_default=EMPTY_LIST, blank=True, help_text="first messages that a new dialog offers"
    )
    instructions = models.TextField(blank=True)
    tools = models.JSONField(
        default=list, blank=True, help_text="names of the tools offered beside memory and ask_human"
    )
    toolsets = models.JSONField(
        default=list,
        db_default=EMPTY_LIST,
        blank=True,
        help_text="workspace, or ids of MCP servers; * is all of them, !name leaves one out",
    )
    tool_approval = models.CharField(
        max_length=8,
        choices=ToolApproval.choices,
        default=ToolApproval.NEVER,
        db_default=ToolApproval.NEVER,
        help_text="whether a person allows calls of tools before they run: those that may change something, or all",
    )
    model_params = models.JSONField(
        default=dict,
        db_default=EMPTY_OBJECT,
        blank=True,
        help_text="settings for the model, by kind of API or under general",
    )
    context_policy = models.CharField(
        max_length=16, blank=True, help_text="the name of a policy; empty: the default of the model's kind"
    )
    critical_policy = models.CharField(max_length=12, choices=CriticalPolicy.choices, default=CriticalPolicy.ESCALATE)
    context_limit = models.PositiveIntegerField(
        null=True, blank=True, help_text="its budget in tokens, for policies that keep to one"
    )
    dialog_budget_usd = models.DecimalField(
        max_digits=18,
        decimal_places=10,
        null=True,
        blank=True,
        help_text="what one dialog may cost before a person is asked; empty: no budget",
    )
    llm_type = models.CharField(max_length=40, blank=True)
    priority = models.PositiveSmallIntegerField(default=2, choices=[(1, "1"), (2, "2"), (3, "3")])
    priority_areas = models.JSONField(default=list, blank=True)
    recall = models.BooleanField(
        default=True,
        db_default=True,
        help_text="bring back into a request what is out of sight and bears on the newest message",
    )
    prepare_rewrites = models.BooleanField(
        default=True,
        db_default=True,
        help_text="make the rewrite that comes next while a person's dialog rests, so that no message waits for its "
        "summary",
    )
    proxy = models.BooleanField(
        default=False,
        db_default=False,
        help_text="for programs: no tools and no words of the runtime; what a request of /v1 brings, and nothing else",
    )
    extras = models.JSONField(
        default=dict, db_default=EMPTY_OBJECT, blank=True, editable=False, help_text="fields of extensions, by name"
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

    @property
    def stated_extras(self) -> dict[str, Any]:
        """Return the values of extensions' fields. A damaged column counts as empty."""
        return self.extras if isinstance(self.extras, dict) else {}

    @property
    def kind(self) -> AgentKind:
        return PROXY if self.proxy else ASSISTANT

    @property
    def headings_kept_first(self) -> tuple[str, ...]:
        """Return the priority areas that can be read. A damaged column counts as empty."""
        return tuple(texts_in(self.priority_areas))


def texts_in(stored: object) -> list[str]:
    """Return the texts in a column for a list of texts. A damaged one may hold any JSON, and must not break pages."""
    return [text for text in stored if isinstance(text, str)] if isinstance(stored, list) else []


class ForcingRefusal(models.Model):
    """A model that refused to be forced to call a tool, although the catalog says otherwise."""

    provider = models.CharField(max_length=80)
    model = models.CharField(max_length=120)
    reason = models.TextField(help_text="in the provider's words")
    refused_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="one_refusal_per_model")]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class ConnectedProvider(models.Model):
    """A provider that somebody connected on the page. If ``llm.yaml`` describes it too, the file wins."""

    provider_id = models.CharField(primary_key=True, max_length=80)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=40)
    base_url = models.URLField(max_length=500)
    sealed_key = models.TextField(blank=True, default="", db_default="", help_text="encrypted; empty: no key")
    model_ids = models.TextField(default="", help_text="those that its server listed, one a line")
    windows = models.JSONField(null=True, blank=True, help_text="tokens that a person stated, by model")
    connected_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["provider_id"]

    def __str__(self) -> str:
        return self.name

    @property
    def stated_windows(self) -> dict[str, int]:
        """Return the stated windows in tokens by model. Damaged entries are left out."""
        stated = self.windows if isinstance(self.windows, dict) else {}
        return {model: tokens for model, tokens in stated.items() if type(tokens) is int and tokens > 0}


class ToolServer(models.Model):
    """An MCP server that somebody added on the page. If ``mcp.yaml`` describes it too, the file wins."""

    server_id = models.CharField(primary_key=True, max_length=32)
    url = models.URLField(max_length=500)
    sealed_key = models.TextField(blank=True, default="", db_default="", help_text="encrypted; empty: no key")
    enabled = models.BooleanField(default=True, db_default=True)
    added_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["server_id"]

    def __str__(self) -> str:
        return self.server_id
