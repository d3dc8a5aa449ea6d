"""Agents in the admin, read-only, with a trial of other settings on their past dialogs. They are edited on the site."""

from copy import copy
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dialogs.context import limits
from dialogs.context.config import with_settings
from dialogs.models import Agent, ConnectedProvider, ToolServer
from dialogs.queries.dry_run import dry_run
from dialogs.views.site.agent_form import policy_choices
from dominds.llm.catalog.catalog import UnknownModel
from dominds.readonly_admin import NoEdits, RecordAdmin
from dominds.yaml_file import BadYaml
from remediation.config import ContextConfig


class TrialForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form with settings to try on past dialogs. It is never saved."""

    context_policy = forms.ChoiceField(required=False)
    settings = forms.CharField(
        label="settings of context.yaml",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60}),
        help_text="In YAML, in place of those in force: limits, the order of the chain, options of its strategies.",
    )
    dialog = forms.UUIDField(required=False, help_text="Only this one, by its id. Empty: the newest.")

    class Meta:
        model = Agent
        fields = ("context_policy", "context_limit", "recall")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["context_policy"]).choices = policy_choices(self.instance.context_policy)

    def clean_settings(self) -> ContextConfig:
        try:
            config, result = with_settings(self.cleaned_data["settings"])
        except BadYaml as error:
            raise forms.ValidationError(f"What is written {error}.") from None
        if result:
            raise forms.ValidationError([str(problem) for problem in result])
        return config


@admin.register(Agent)
class AgentAdmin(NoEdits, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("id", "name", "provider", "model", "policy", "critical_policy", "enabled", "is_listed", "usable")
    list_filter = ("enabled", "provider", "context_policy", "is_listed", "is_demo")
    search_fields = ("id", "name", "model")
    show_full_result_count = False

    @admin.display(description="context policy")
    def policy(self, agent: Agent) -> str:
        choice = limits.policy_of(agent)
        return f"{choice.policy.name}: {choice.problem}" if choice.problem else choice.policy.name

    @admin.display(boolean=True)
    def usable(self, agent: Agent) -> bool:
        return not limits.unusable_reason(agent)

    @admin.display(description="why it cannot answer now")
    def reason(self, agent: Agent) -> str:
        return limits.unusable_reason(agent) or "–"

    @admin.display(description="other settings")
    def trial(self, agent: Agent) -> SafeString:
        address = reverse("admin:dialogs_agent_dry_run", args=[agent.pk])
        return format_html('<a href="{}">Try them on past dialogs</a>', address)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.dry_run)
        return [path("<slug:agent_id>/dry-run/", view, name="dialogs_agent_dry_run"), *super().get_urls()]

    def dry_run(self, request: HttpRequest, agent_id: str) -> HttpResponse:
        """Show what the settings keep of the agent's newest dialogs, before and after a change that is not made."""
        agent = get_object_or_404(Agent, pk=agent_id)
        if not self.has_view_permission(request, agent):
            raise PermissionDenied
        form = TrialForm(request.POST or None, instance=copy(agent), initial={"dialog": request.GET.get("dialog")})
        result = None
        if form.is_valid():
            try:
                result = dry_run(agent, form.instance, form.cleaned_data["settings"], form.cleaned_data["dialog"])
            except UnknownModel as error:
                form.add_error(None, str(error))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{agent}: other settings on past dialogs",
            "agent": agent,
            "form": form,
            "found": result,
        }
        return TemplateResponse(request, "admin/dialogs/agent/dry_run.html", context)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("reason", "trial")

    def view_on_site(self, agent: Agent) -> str:
        return reverse("agent", args=[agent.pk])


@admin.register(ConnectedProvider)
class ConnectedProviderAdmin(RecordAdmin):
    """Connected providers, without their sealed keys."""

    list_display = ("provider_id", "name", "kind", "base_url", "connected_at")
    fields = ("provider_id", "name", "kind", "base_url", "model_ids", "connected_at")


@admin.register(ToolServer)
class ToolServerAdmin(RecordAdmin):
    """Tool servers, without their sealed keys."""

    list_display = ("server_id", "url", "enabled", "added_at")
    fields = ("server_id", "url", "enabled", "added_at")
