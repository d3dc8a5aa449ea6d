"""The form of an agent, under the rules of ``team.yaml``."""

from typing import Any, cast

from django import forms
from django.utils.module_loading import import_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.agents.fields import check_fields
from dialogs.context.config import current_config
from dialogs.extension import installed_extensions
from dialogs.models import Agent
from dialogs.pages.home import models_for_agents
from dialogs.tools import mcp
from dialogs.tools.mcp_config import current_config as mcp_config
from dialogs.tools.registry import TOOLSETS, builtin_tools
from dialogs.views.forms import MOST_TOKENS, Dollars, WholeNumber
from remediation.config import below_floor
from remediation.policies.registry import choices

LISTS = ("suggestions", "tools", "toolsets", "priority_areas")


def policy_choices(now: str) -> list[tuple[str, str]]:
    """Return the installed policies as choices. The agent's policy ``now`` is among them even if it is not installed,
    so that people see it; saving refuses it.
    """
    results = [("", "the default of the model's kind"), *((policy.name, policy.label) for policy in choices())]
    return results if now in dict(results) else [*results, (now, f"{now} (not installed)")]


class Lines(forms.CharField):
    """A field with one text on each line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=forms.Textarea({"rows": 3}), **options)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


class ToolNames(forms.MultipleChoiceField):
    """A field with names of tools. A tool of a known server is valid without asking the server for its list."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=forms.CheckboxSelectMultiple, **options)

    def valid_value(self, value: str) -> bool:
        is_of_server = value.startswith(mcp.PREFIX) and "/" in value and not mcp.problem_with(value)
        return is_of_server or super().valid_value(value)


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """An agent's form, which shows each problem at its field.

    ``answers_with`` is ``provider/model``, one of the models that can be used.
    """

    answers_with = forms.ChoiceField(label=_("Model"))
    context_policy = forms.ChoiceField(required=False, label=_("Context policy"))
    tool_approval = forms.ChoiceField(
        required=False,  # a form that leaves it out changes nothing
        choices=(
            (Agent.ToolApproval.NEVER, _("never")),
            (Agent.ToolApproval.CHANGES, _("if it may change something")),
            (Agent.ToolApproval.ALWAYS, _("always")),
        ),
        label=_("Ask before a tool runs"),
        help_text=_(
            "A person sees each call with its arguments, and allows it. Its server says whether a tool only reads."
        ),
    )
    suggestions = Lines(label=_("Suggestions"), help_text=_("First messages that a new dialog offers, one a line."))
    tools = ToolNames(label=_("Tools"))
    toolsets = ToolNames(label=_("Groups of tools"))
    priority_areas = Lines(label=_("Priority areas"), help_text=_("Headings of what is kept first, one a line."))
    context_limit = WholeNumber(
        1,
        MOST_TOKENS,
        "tokens",
        required=False,
        label=_("Budget in tokens"),
        help_text=_("For policies with a budget. Empty: the limit of the site."),
    )

    class Meta:
        model = Agent
        fields = (
            "name",
            "description",
            "suggestions",
            "instructions",
            "tools",
            "toolsets",
            "tool_approval",
            "model_params",
            "context_policy",
            "critical_policy",
            "context_limit",
            "dialog_budget_usd",
            "llm_type",
            "priority",
            "priority_areas",
            "recall",
            "prepare_rewrites",
            "proxy",
            "is_default",
        )
        field_classes = {"dialog_budget_usd": Dollars}
        labels = {
            "name": _("Name"),
            "description": _("Description"),
            "instructions": _("Instructions"),
            "model_params": _("Settings for the model (JSON)"),
            "critical_policy": _("When clearing fails"),
            "dialog_budget_usd": _("Budget of a dialog (USD)"),
            "llm_type": _("LLM type"),
            "priority": _("Priority"),
            "recall": _("Recall earlier passages"),
            "prepare_rewrites": _("Prepare the next summary while nobody writes"),
            "proxy": _("For programs only: add nothing to what they send"),
            "is_default": _("The default: it answers where nobody chose an agent"),
        }
        help_texts = {
            "description": _("What it is good for, in the choice of agents."),
            "instructions": _("What the model reads before every conversation."),
            "model_params": _('Sent with each request, by kind of API or for all: {"general": {"effort": "low"}}.'),
            "dialog_budget_usd": _("What one dialog may cost before a person is asked. Empty: no budget."),
            "llm_type": _("Under “Context limits” each type has a limit: the agent has that of the type named here."),
            "priority": _("Agents of priority 1 get a fifth more room."),
            "recall": _("Bring back what is out of sight and bears on the newest message."),
        }
        widgets = {
            "instructions": forms.Textarea({"rows": 8}),
            "model_params": forms.Textarea({"rows": 3, "spellcheck": "false"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agent: Agent = self.instance
        now = f"{agent.provider}/{agent.model}" if agent.provider else ""
        self.models = models_for_agents()
        values = [f"{model.provider_id}/{model.model_id}" for _name, models in self.models for model in models]
        self.lost_model = now if now not in values else ""  # the model's server or key is gone
        cast(forms.ChoiceField, self.fields["answers_with"]).choices = [
            (value, value) for value in (*values, self.lost_model) if value
        ]
        self.initial.setdefault("answers_with", now)
        cast(forms.ChoiceField, self.fields["context_policy"]).choices = [
            ("", gettext("the usual one of its model")),
            *((name, gettext(label)) for name, label in policy_choices(agent.context_policy)[1:]),
        ]
        cast(forms.ChoiceField, self.fields["critical_policy"]).choices = [
            (Agent.CriticalPolicy.ESCALATE, gettext("ask a person")),
            (Agent.CriticalPolicy.COUNTDOWN, gettext("count down, and start a new round")),
        ]
        servers = mcp_config()
        offered = [name for name, tool in builtin_tools().items() if not tool.always]
        for field, names in (("tools", offered), ("toolsets", [*TOOLSETS, *servers.servers, *servers.off])):
            stored = [name for name in getattr(agent, field) or [] if isinstance(name, str)]
            cast(ToolNames, self.fields[field]).choices = [(n, n) for n in dict.fromkeys([*names, *stored])]
        makers = (import_string(extension.agent_form) for extension in installed_extensions() if extension.agent_form)
        added: dict[str, forms.Field] = {name: field for make in makers for name, field in make(agent).items()}
        self.fields |= added
        self.initial.update({name: agent.stated_extras.get(name) for name in added})
        self._added = tuple(added)

    @property
    def of_extensions(self) -> list[forms.BoundField]:
        return [self[name] for name in self._added]

    @property
    def ticked(self) -> set[str]:
        """Return the names of tools and of groups that are ticked."""
        return {str(name) for field in ("tools", "toolsets") for name in self[field].value() or []}

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        given["provider"], _slash, given["model"] = given.get("answers_with", "").partition("/")
        self.instance.provider, self.instance.model = given["provider"], given["model"]
        if not given["model"]:
            return given
        for name in LISTS:
            given[name] = given.get(name) or []  # the column refuses None
        given["model_params"] = given.get("model_params") or {}
        given["tool_approval"] = given.get("tool_approval") or self.instance.tool_approval
        limit, floor = given.get("context_limit"), current_config().min_limit
        if limit and "context_limit" in self.changed_data and (reason := below_floor(limit, floor)):
            self.add_error("context_limit", reason)
        for name, reason in check_fields(given)[1]:
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, reason)
        others = {name: value for name, value in self.instance.stated_extras.items() if name not in self._added}
        self.instance.extras = others | {name: given[name] for name in self._added if given.get(name)}
        return given

    @property
    def proposed(self) -> Agent:
        """Return an unsaved agent with the present values, sound or not."""
        self.is_valid()
        agent = Agent(**{field.attname: getattr(self.instance, field.attname) for field in Agent._meta.concrete_fields})
        for name, value in self.cleaned_data.items():
            if name in self.Meta.fields:
                setattr(agent, name, value)
        return agent
