"""The pages of the catalog's models, with their limits and problems, and the page that connects another one."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dialogs.agents import connecting
from dialogs.agents.connecting import Server
from dialogs.context import connected, limits
from dialogs.errors import Refusal
from dialogs.models import Agent, ConnectedProvider
from dialogs.permissions import OPERATE, may
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.answers import PersonRequest, View, for_operators
from dialogs.views.forms import MOST_TOKENS, WholeNumber, clean
from dialogs.views.site.forms import ServerForm
from dominds.llm.catalog.catalog import ModelInfo, UnknownModel, retirement_of
from dominds.llm.models.learned import with_learned
from dominds.llm.models.model import LimitUnavailable
from dominds.llm.models.prices import Price, price_of
from dominds.llm.providers.listing import Listing
from dominds.yaml_fields import classes_of
from health.levels import Thresholds, stated_thresholds
from health.traps import chosen_traps


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model with the thresholds in force. ``traps`` are sentences about their problems, and about its retirement."""

    model: ModelInfo
    thresholds: Thresholds
    traps: tuple[str, ...]

    @property
    def is_asked(self) -> bool:
        """Check whether only the model's server knows the window."""
        return self.model.kind.needs_limit and self.model.kind.loaded_window is not None

    @property
    def prices(self) -> list[Price]:
        """Return the prices in force, those of short prompts first."""
        tiers = sorted({price.above for price in self.model.prices})
        held = (price_of(above + 1, self.model.prices, timezone.now()) for above in tiers)
        return list(dict.fromkeys(filter(None, held)))


def row_of(model: ModelInfo, thresholds: Thresholds) -> ModelRow:
    traps = [str(trap) for trap in chosen_traps(thresholds, model.input_length)]
    retires = retirement_of(model, timezone.localdate())
    return ModelRow(model, thresholds, (*traps, retires) if retires else tuple(traps))


@login_required
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    """List models by provider, the providers in use first. Windows are those of the catalog: asking the servers would
    cost a request for each model.
    """
    connected.follow()
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
        "connected": set(connected.connected()),
        "section": "models",
    }
    return render(request, "models/list.html", context)


class WindowForm(forms.Form):
    """The window of a model as a person states it; empty for what its server says."""

    window = WholeNumber(1, MOST_TOKENS, "tokens", label=gettext_lazy("Context window"), required=False)


@login_required
@require_http_methods(["GET", "POST"])
def show(request: PersonRequest, provider: str, model: str) -> HttpResponse:
    """Show the page of a model. Operators can state the window of a model that was connected on the page."""
    connected.follow()
    try:
        result = limits.as_served(with_learned(limits.catalog().model(provider, model)))
    except UnknownModel as error:
        raise Http404(str(error)) from error
    is_stated_here = provider in connected.connected() and may(request.user, OPERATE)
    form = WindowForm(request.POST or None, initial={"window": result.context_length}) if is_stated_here else None
    if request.method == "POST":
        if form is None:
            raise Http404
        if form.is_valid():
            connecting.state_window(provider, model, form.cleaned_data["window"])
            messages.success(request, _("Saved."))
            return redirect("model", provider, model)
    loaded = limits.loaded_limit(result)
    context = {
        "row": row_of(result, limits.thresholds_under(result, loaded)),
        "why_unknown": loaded.reason if isinstance(loaded, LimitUnavailable) else "",
        "window_form": form,
        "agents": Agent.objects.filter(provider=provider, model=model),
        "section": "models",
    }
    return render(request, "models/model.html", context, status=400 if request.method == "POST" else 200)


# -- Connect a model


def with_keys(view: Callable[..., HttpResponse]) -> View:
    """Show a view to operators, and let nobody store a copy of the page, since a key may have been typed into it."""
    return for_operators(sensitive_post_parameters()(cache_control(no_store=True)(view)))


@with_keys
@require_http_methods(["GET", "POST"])
def connect(request: PersonRequest) -> HttpResponse:
    """Show the servers on this machine, and a form for others. A POST asks the typed server for its models."""
    if request.method == "GET":
        return _connect_page(request, ServerForm())
    form = ServerForm(request.POST)
    if not form.is_valid():
        return _connect_page(request, form, status=400)
    server = _typed_server(form)
    return _connect_page(request, form, server, connecting.test(server))


def _typed_server(form: ServerForm) -> Server:
    given = clean(form)
    return Server.at(given["kind"], given["address"], given["key"]).with_recognised_kind()


def _connect_page(
    request: PersonRequest,
    form: ServerForm,
    server: Server | None = None,
    answer: Listing | None = None,
    status: int = 200,
) -> HttpResponse:
    connected.follow()
    catalog = limits.catalog()
    context = {
        "found": connecting.local_offers(),
        "form": form,
        "server": server,
        "answer": answer,
        "offers": [connecting.Offer(model) for model in answer.models] if answer else [],
        "addresses": sorted({entry.base_url for entry in catalog.providers.values() if entry.base_url}),
        "providers": [
            (row, catalog.providers[row.pk].unusable, row.pk in catalog.in_file)
            for row in ConnectedProvider.objects.all()
            if row.pk in catalog.providers
        ],
        "section": "models",
    }
    return render(request, "models/connect.html", context, status=status)


@with_keys
@require_POST
def use(request: PersonRequest) -> HttpResponse:
    """Make an agent with a listed model and go on to the composer.

    ``server`` is the address of a server on this machine. Without one, the form names the server.
    """
    form = ServerForm(request.POST)
    local = next(
        (server for server in connecting.local_servers() if server.base_url == request.POST.get("server")), None
    )
    try:
        agent = connecting.use(local or _typed_server(form), request.POST.get("model", ""))
    except Refusal as refusal:
        messages.error(request, in_plain_words(refusal.message))
        return _connect_page(request, ServerForm() if local else form, status=refusal.status)
    messages.success(request, _("Connected. {agent} answers now.").format(agent=agent))
    return redirect(f"{reverse('home')}?{urlencode({'agent': agent.pk})}")


class ProviderForm(ServerForm):
    """The form of a connected provider, whose kind cannot change."""

    name = forms.CharField(max_length=120)


@with_keys
@require_http_methods(["GET", "POST"])
def edit(request: PersonRequest, provider: str) -> HttpResponse:
    row = get_object_or_404(ConnectedProvider, pk=provider)
    form = ProviderForm(request.POST or None, initial={"name": row.name, "address": row.base_url})
    if request.method == "POST":
        try:
            given = clean(form)
            messages.success(request, connecting.change(row, given["name"], given["address"], given["key"]))
            return redirect("connect")
        except Refusal as refusal:
            messages.error(request, _("Not saved. {reason}").format(reason=in_plain_words(refusal.message)))
    context = {
        "row": row,
        "form": form,
        "used_by": connecting.used_by(row.pk),
        "in_file": row.pk in limits.catalog().in_file,
        "section": "models",
    }
    return render(request, "models/provider.html", context, status=400 if request.method == "POST" else 200)


@with_keys
@require_POST
def remove(request: PersonRequest) -> HttpResponse:
    """Remove a provider. Agents that use it stay, and say why they cannot answer."""
    provider = request.POST.get("provider", "")
    if connected.remove(ConnectedProvider, provider):
        text = _("Removed, with its key. What the server's configuration says of it still holds.")
        messages.success(request, f"{text} {connecting.used_by(provider)}")
    else:
        messages.error(request, _("There is no such provider, or it was removed before. Nothing was changed."))
    return redirect("connect")
