"""The pages of agents: model, instructions, tools, policy and limits of each, with a preview of the choices."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dialogs.agents import own
from dialogs.context import connected, limits
from dialogs.errors import Refusal
from dialogs.models import Agent
from dialogs.pages import agent_tools
from dialogs.pages.agent_preview import AgentPreview
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.tools.mcp_config import current_config as mcp_config
from dialogs.views.answers import PersonRequest, for_operators, refuse, say_not_saved
from dialogs.views.site.agent_form import AgentForm


@for_operators
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    connected.follow()
    results = [
        (agent, limits.policy_of(agent), limits.unusable_reason(agent) or limits.missing_key(agent))
        for agent in Agent.objects.order_by("-enabled", "is_demo", "id")
    ]
    return render(request, "agents/list.html", {"agents": results, "section": "agents"})


@for_operators
@require_http_methods(["GET", "POST"])
def new(request: PersonRequest) -> HttpResponse:
    """Show the form of a new agent. ``copy`` names an agent to start from."""
    origin = Agent.objects.filter(pk=request.GET.get("copy", "")).first()
    usual = Agent.objects.filter(is_default=True).first() or own.blank()
    return _form_page(request, own.copy_of(origin) if origin else own.blank(usual.provider, usual.model))


@for_operators
@require_http_methods(["GET", "POST"])
def edit(request: PersonRequest, agent_id: str) -> HttpResponse:
    return _form_page(request, get_object_or_404(Agent, pk=agent_id))


def _form_page(request: PersonRequest, agent: Agent) -> HttpResponse:
    connected.follow()
    form = AgentForm(request.POST or None, instance=agent)
    if request.method == "POST":
        try:
            if form.is_valid():
                saved = own.save(form.instance)
                messages.success(
                    request, _("Saved. {agent} answers so from the next model call on.").format(agent=saved)
                )
                if reason := limits.unusable_reason(saved) or limits.missing_key(saved):
                    messages.warning(request, reason)
                return redirect("agents")
            say_not_saved(request, form)
        except Refusal as refusal:
            messages.error(request, _("Not saved. {reason}").format(reason=in_plain_words(refusal.message)))
    stored = Agent.objects.filter(pk=agent.pk).first()
    if stored and stored.is_listed:
        for field in form.fields.values():
            field.disabled = True
    context = {
        "agent": stored,
        "form": form,
        "preview": AgentPreview(stored, stored or agent),
        "section": "agents",
        **_tools_context(form.ticked, ask=False),
        "fixed": bool(stored and stored.is_listed),
    }
    return render(request, "agents/agent.html", context, status=400 if request.method == "POST" else 200)


def _tools_context(ticked: set[str], *, ask: bool) -> dict[str, Any]:
    groups = agent_tools.groups_to_tick(ask=ask)
    return {
        "groups": groups,
        "ticked": ticked,
        "beside": agent_tools.names_beside(groups, ticked),
        "all_known": all(group.tools is not None for group in groups),
        "has_servers": bool(mcp_config().servers),
    }


@for_operators
@require_GET
def tools(request: PersonRequest) -> HttpResponse:
    """Render the tools to tick, those of every server included: each server is asked for its list."""
    connected.follow()
    ticked = {*request.GET.getlist("tools"), *request.GET.getlist("toolsets")}
    return render(request, "agents/_tools.html", _tools_context(ticked, ask=True))


@login_required
@require_GET
def about(request: PersonRequest, agent_id: str) -> HttpResponse:
    """Say what an agent is and can do, to everybody who may talk to it."""
    agent = get_object_or_404(Agent, pk=agent_id, enabled=True)
    connected.follow()
    always, given = agent_tools.tools_had_by(agent)
    context = {
        "agent": agent,
        "model": limits.catalog().models.get((agent.provider, agent.model)),
        "reason": limits.unusable_reason(agent),
        "always": always,
        "given": given,
        "left_out": agent_tools.left_out_of(agent),
    }
    return render(request, "agents/about.html", context)


@for_operators
@require_POST
def preview(request: PersonRequest) -> HttpResponse:
    """Render the preview beside the form, before anything is saved. ``agent`` names the form's agent, if stored."""
    stored = Agent.objects.filter(pk=request.POST.get("agent", "")).first()
    form = AgentForm(request.POST, instance=Agent.objects.get(pk=stored.pk) if stored else own.blank())
    result = AgentPreview(stored, form.proposed)
    return render(request, "agents/_preview.html", {"preview": result, "form": form, "agent": stored})


@for_operators
@require_POST
def switch(request: PersonRequest, agent_id: str) -> HttpResponse:
    agent, on = get_object_or_404(Agent, pk=agent_id), request.POST.get("on") == "yes"
    try:
        own.switch(agent, on=on)
    except Refusal as refusal:
        return refuse(request, refusal, "/agents/")
    text = _("{agent} answers again.") if on else _("{agent} is switched off: it answers no new message.")
    messages.success(request, text.format(agent=agent))
    return redirect("agents")
