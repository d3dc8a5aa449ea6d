"""The models that the catalog knows: their limits, where these come from, and what is wrong with them."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dialogs import model_limits
from dialogs.models import Agent
from dialogs.views.answers import PersonRequest
from dominds.llm.catalog import ModelInfo, UnknownModel
from health.levels import Thresholds
from health.traps import traps_of


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model with the thresholds that hold for it now."""

    model: ModelInfo
    thresholds: Thresholds
    traps: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.model.provider_id}/{self.model.model_id}"


def row_of(model: ModelInfo) -> ModelRow:
    thresholds = model_limits.thresholds_of_model(model)
    return ModelRow(model, thresholds, tuple(str(trap) for trap in traps_of(thresholds, model.input_length)))


@login_required
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    """By provider; LM Studio's are not asked here, since each would cost a request."""
    catalog = model_limits.catalog()
    groups = [
        (provider, [model for model in catalog.models.values() if model.provider_id == provider.provider_id])
        for provider in catalog.providers.values()
    ]
    used = {(agent.provider, agent.model) for agent in Agent.objects.filter(enabled=True)}
    groups.sort(key=lambda group: (not any((m.provider_id, m.model_id) in used for m in group[1]), group[0].name))
    context = {
        "groups": [(provider, models, any((m.provider_id, m.model_id) in used for m in models)) for provider, models in groups],
        "problems": catalog.problems,
        "section": "models",
    }
    return render(request, "models/list.html", context)


@login_required
@require_GET
def show(request: PersonRequest, provider: str, model: str) -> HttpResponse:
    try:
        found = model_limits.catalog().model(provider, model)
    except UnknownModel as error:
        raise Http404(str(error)) from error
    context = {
        "row": row_of(found),
        "agents": Agent.objects.filter(provider=provider, model=model),
        "problems": [problem for problem in model_limits.catalog().problems if model in problem.path],
        "section": "models",
    }
    return render(request, "models/model.html", context)
