"""The operator's page: how the server does, and what to do about a dialog that does not get on. Staff only."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dialogs.errors import Refusal
from dialogs.operations import costs as costs_of
from dialogs.operations import dashboard as server
from dialogs.operations import interventions
from dialogs.operations.bar_chart import stacked
from dialogs.permissions import OPERATE, may
from dialogs.views.answers import PersonRequest

ACTIONS: dict[str, Callable[..., None]] = {
    "interrupt": interventions.interrupt,
    "wake": interventions.wake,
    "fail": interventions.fail,
    "retry": interventions.retry,
}
DONE = {
    "interrupt": "Asked the worker to stop.",
    "wake": "Woken: a worker takes up the dialog now.",
    "fail": "The message was marked as failed; its owner sees that and can retry.",
    "retry": "The message is being answered again.",
    "finish": "The cleanup task is done.",
}


def for_staff(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """For everybody else the page does not exist."""

    @login_required
    @wraps(view)
    def shown(request: PersonRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not may(request.user, OPERATE):
            raise Http404
        return view(request, *args, **kwargs)

    return shown


@for_staff
@require_GET
def dashboard(request: PersonRequest) -> HttpResponse:
    """The page; htmx fetches its inner part again every ten seconds."""
    template = "ops/_dashboard.html" if request.htmx else "ops/dashboard.html"
    recent = server.recent()
    context = {
        "cards": server.cards(recent),
        "recent": recent,
        "parts": server.parts(),
        "leases": server.held_leases(),
        "stuck": server.stuck_dialogs(),
        "failed": server.failed_dialogs(),
        "undelivered": server.undelivered(),
        "backing_off": server.backing_off(),
        "levels": stacked(server.levels_by_hour(), "%d %b %H:00 UTC"),
        "compactions": stacked(server.compactions_by_day(), "%d %b"),
        "context_events": server.context_events(),
        "tasks": server.cleanup_tasks(),
        "proposals": server.proposals(),
        "proposals_address": _admin_list("remediation_proposal"),
        "now": timezone.now(),
        "section": "ops",
    }
    return render(request, template, context)


@for_staff
@require_GET
def costs(request: PersonRequest) -> HttpResponse:
    return render(request, "ops/costs.html", {"tables": costs_of.tables(), "days": costs_of.DAYS, "section": "ops"})


def _admin_list(model: str) -> str:
    """Where the admin lists these rows; empty while it does not."""
    try:
        return reverse(f"admin:{model}_changelist")
    except NoReverseMatch:
        return ""


@for_staff
@require_POST
def intervene(request: PersonRequest, dialog_id: Any, action: str) -> HttpResponse:
    if action not in ACTIONS:
        raise Http404
    return _do(request, action, lambda: ACTIONS[action](dialog_id, request.user))


@for_staff
@require_POST
def finish_task(request: PersonRequest, task_id: int) -> HttpResponse:
    return _do(request, "finish", lambda: interventions.finish_task(task_id, request.user))


def _do(request: PersonRequest, action: str, act: Callable[[], None]) -> HttpResponse:
    try:
        act()
    except Refusal as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, DONE[action])
    return redirect("ops")
