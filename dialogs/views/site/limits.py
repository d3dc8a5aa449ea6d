"""Context breaking's limits, edited by staff under the same validation as ``context.yaml``."""

from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from dialogs.context import limits
from dialogs.context.config import current_config, save_edits
from dialogs.context.config import problems as problems_of_file
from dialogs.models import Agent
from dialogs.views.answers import PersonRequest, for_operators, say_not_saved
from dialogs.views.site.forms import LimitsForm, LlmLimits
from dominds.llm.catalog.catalog import UnknownModel
from remediation.config import ContextConfig, effective_limit
from remediation.models import ContextSettings


@dataclass(frozen=True, slots=True)
class AgentLimit:
    """The limit in force for one agent, with its source."""

    agent: Agent
    limit: int
    source: str


@for_operators
@require_http_methods(["GET", "POST"])
def show(request: PersonRequest) -> HttpResponse:
    config = current_config()
    form = LimitsForm(request.POST or None, initial=_limits(config))
    rows = LlmLimits(
        request.POST or None, initial=[_row(entry) for entry in config.to_mapping()["per_llm"]], prefix="llm"
    )
    if request.method == "POST":
        if all((form.is_valid(), rows.is_valid())) and _save(form, rows):
            messages.success(request, _("Saved. It holds from the next model call on."))
            return redirect("limits")
        say_not_saved(request, form, rows)
    context = {
        "form": form,
        "rows": rows,
        "file_problems": problems_of_file(),
        "agents": [_of_agent(config, agent) for agent in Agent.objects.filter(enabled=True)],
        "section": "settings",
    }
    return render(request, "accounts/limits.html", context, status=400 if request.method == "POST" else 200)


def _save(form: LimitsForm, rows: Any) -> bool:
    """Save the values, or put their problems beside their fields."""
    result = save_edits({**_edits(), **form.cleaned_data, "per_llm": _given_rows(rows)})
    for problem in result:
        name = problem.path.removeprefix("context_config.")
        row = next((row for row in rows if name == f"per_llm.{row.cleaned_data.get('type')}"), None)
        if row is not None:
            row.add_error("limit", problem.reason)
        elif name in form.fields:
            form.add_error(name, problem.reason)
        else:
            form.add_error(None, f"{problem.path}: {problem.reason}")
    return not result


def _edits() -> dict[str, Any]:
    """Return all earlier edits, so that saving the limits preserves the others."""
    return ContextSettings.objects.values_list("config", flat=True).first() or {}


def _limits(config: ContextConfig) -> dict[str, Any]:
    mapping = config.to_mapping()
    return {name: mapping[name] for name in LimitsForm.base_fields}


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("type", "limit", "follow_default")}


def _given_rows(rows: Any) -> list[dict[str, Any]]:
    """Return the rows with a type that are not ticked for removal. A row that follows the default may lack a limit."""
    entries = []
    for row in rows.cleaned_data:
        if row.get("type") and not row.get("DELETE"):
            limit = {"limit": row["limit"]} if row["limit"] else {}
            entries.append({"type": row["type"], "follow_default": row["follow_default"], **limit})
    return entries


def _of_agent(config: ContextConfig, agent: Agent) -> AgentLimit:
    try:
        window = limits.model_of(agent).limit[0]
    except UnknownModel:
        window = None
    asked = (agent.context_limit, agent.llm_type, agent.priority, window)
    limit = effective_limit(config, *asked)
    source = _("its model's window") if limit == window else _source(config, agent)
    if limit > effective_limit(replace(config, min_limit=0), *asked):
        source = _("the global minimum; {source} is below it").format(source=source)
    return AgentLimit(agent, limit, source)


def _source(config: ContextConfig, agent: Agent) -> str:
    if agent.context_limit:
        source = _("its own {number:,}").format(number=agent.context_limit)
    elif any(entry.type == agent.llm_type and not entry.follow_default for entry in config.per_llm):
        source = _("LLM type {name}").format(name=agent.llm_type)
    else:
        source = _("default")
    return _("{source}, +20 % for priority 1").format(source=source) if agent.priority == 1 else source
