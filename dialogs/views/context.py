"""What the page tells about a dialog's context: its health over time, one turn's usage, the whole as a file."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from dialogs.api.dialogs import download
from dialogs.models import Generation, Turn
from dialogs.pages.dialog_page import DialogPage, usage_points
from dialogs.pages.entries import address_of, calls_of
from dialogs.queries import export
from dialogs.views.answers import PersonRequest, dialog_or_404

ROWS = 50
CHART_POINTS = 200


@login_required
@require_GET
def health(request: PersonRequest, dialog_id: UUID) -> HttpResponse:
    """Every model call with the level it led to; discarded ones too, without their text."""
    dialog = dialog_or_404(dialog_id, request.user)
    generations = dialog.generations.select_related("snapshot").order_by("-pk")
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "points": usage_points(dialog, CHART_POINTS),
        "found": Paginator(generations, ROWS).get_page(request.GET.get("page") or 1),
        "section": "dialogs",
    }
    return render(request, "dialogs/health.html", context)


@login_required
@require_GET
def usage(request: PersonRequest, dialog_id: UUID, seq: int) -> HttpResponse:
    """Where the numbers under one answer come from."""
    dialog = dialog_or_404(dialog_id, request.user)
    turn = dialog.turns.select_related("generation__snapshot").filter(seq=seq).first()
    if (
        turn is not None and dialog.forked_from_id and (turn.position or 0) < dialog.own_from
    ):  # copied: its call stands where it was made
        return redirect("usage", dialog_id=dialog.forked_from_id, seq=seq)
    if turn is None or turn.generation is None:
        raise Http404
    tries = Generation.objects.filter(dialog=dialog, answers_seq=turn.generation.answers_seq)
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "place": address_of(dialog, turn.position or 0, f"turn-{turn.seq}"),
        "turn": turn,
        "generation": turn.generation,
        "snapshot": getattr(turn.generation, "snapshot", None),
        "tries": tries.filter(~Q(answers_seq=None)).select_related("snapshot").order_by("pk"),
        "section": "dialogs",
    }
    return render(request, "dialogs/usage.html", context)


@login_required
@require_GET
def whole_turn(request: PersonRequest, dialog_id: UUID, seq: int) -> HttpResponse:
    """One turn as plain text, whole: what was said, or a call's arguments and result; with
    ``?text`` its text alone. Pages cut what is long."""
    dialog = dialog_or_404(dialog_id, request.user)
    turn = dialog.turns.filter(seq=seq).first()
    if turn is None:
        raise Http404
    if "text" in request.GET:
        return HttpResponse(turn.text, content_type="text/plain; charset=utf-8")
    asked, _ = calls_of(dialog, [turn]).get(turn.tool_call_id, (None, None))
    made = turn.tool_calls or ([asked] if asked else [])
    calls = [f"{call['name']} {call['arguments']}" for call in made]
    parts = [*calls, turn.text] if turn.role == Turn.Role.TOOL else [turn.text, *calls]
    return HttpResponse("\n\n".join(part for part in parts if part), content_type="text/plain; charset=utf-8")


@login_required
@require_GET
def export_markdown(request: PersonRequest, dialog_id: UUID) -> HttpResponseBase:
    dialog = dialog_or_404(dialog_id, request.user)
    return download(export.as_markdown(dialog), f"dialog-{str(dialog.pk)[:8]}.md", "text/markdown")


@login_required
@require_GET
def export_json(request: PersonRequest, dialog_id: UUID) -> HttpResponseBase:
    dialog = dialog_or_404(dialog_id, request.user)
    return download(export.as_json(dialog), f"dialog-{str(dialog.pk)[:8]}.json", "application/json")
