"""The models that the catalog knows: their limits, where these come from, and what is wrong with them."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from dialogs.context import limits
from dialogs.models import Agent
from dialogs.views.answers import PersonRequest
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel, retirement_of
from dominds.yaml_fields import classes_of
from health.levels import Thresholds, stated_thresholds
from health.traps import traps_of


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model with the thresholds that hold for it, and what is wrong with them."""

    model: ModelInfo
    thresholds: Thresholds
    traps: tuple[str, ...]

    @property
    def is_asked(self) -> bool:
        """Whether only its server knows the window."""
        return self.model.kind.needs_limit and self.model.kind.loaded_window is not None


def row_of(model: ModelInfo, thresholds: Thresholds) -> ModelRow:
    traps = [str(trap) for trap in traps_of(thresholds, model.input_length)]
    retires = retirement_of(model, timezone.localdate())
    return ModelRow(model, thresholds, (*traps, retires) if retires else tuple(traps))


@login_required
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    """By provider, those in use first. Servers are not asked here: that would cost a request for each model."""
    catalog = limits.catalog()
    used = {agent.provider for agent in Agent.objects.filter(enabled=True)}
    providers = sorted(
        catalog.providers.values(), key=lambda entry: (entry.provider_id not in used, entry.name.lower())
    )
    rows: dict[str, list[ModelRow]] = {entry.provider_id: [] for entry in providers}
    for model in catalog.models.values():
        rows[model.provider_id].append(row_of(model, stated_thresholds(model)))
    context = {
        "groups": [(entry, rows[entry.provider_id], entry.provider_id in used) for entry in providers],
        "problems": classes_of(catalog.problems),
        "problem_count": len(catalog.problems),
        "section": "models",
    }
    return render(request, "models/list.html", context)


@login_required
@require_GET
def show(request: PersonRequest, provider: str, model: str) -> HttpResponse:
    try:
        found = limits.as_served(limits.catalog().model(provider, model))
    except UnknownModel as error:
        raise Http404(str(error)) from error
    context = {
        "row": row_of(found, limits.thresholds_of_model(found)),
        "agents": Agent.objects.filter(provider=provider, model=model),
        "section": "models",
    }
    return render(request, "models/model.html", context)
