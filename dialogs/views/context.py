"""Views of a dialog's context: its health over time, one turn's usage, and the whole as a file."""

from django.db.models import Q
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from dialogs.api.dialogs import send_export
from dialogs.models import Dialog, Generation, Turn
from dialogs.pages.dialog_page import DialogPage, highest, usage_points
from dialogs.pages.entries import address_of, calls_of
from dialogs.views.answers import PersonRequest, dialog_page
from dominds.db.bounded import NewestFirst

ROWS = 50
CHART_POINTS = 200
CHART_ROOM = 12
FEWEST_DRAWN = 4


@dialog_page
def health(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """List every model call with the level it led to; discarded ones too, without their text."""
    generations = Generation.objects.newest_of(dialog.pk).select_related("snapshot")
    points = usage_points(dialog, CHART_POINTS, CHART_ROOM)
    top = highest(point["snapshot"] for point in points)
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "points": points,
        "is_drawn": len(points) >= FEWEST_DRAWN,
        "ticks": [(0, f"{top:,}"), (50, f"{top / 2:,.0f}"), (100, "0")],
        "found": NewestFirst(generations, ROWS, until=request.GET.get("until", "")).get_page(
            request.GET.get("page") or 1
        ),
        "section": "dialogs",
    }
    return render(request, "dialogs/health.html", context)


@dialog_page
def details(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Render the panels beside a conversation that weigh its whole context; a page fetches them while they are in
    view.
    """
    page = DialogPage(dialog, request.user, request=request)
    return HttpResponse(page.piece("context_panel") + page.piece("usage_panel"))


@dialog_page
def usage(request: PersonRequest, dialog: Dialog, seq: int) -> HttpResponse:
    """Show where the numbers under one answer come from."""
    turn = dialog.turns.select_related("generation__snapshot").filter(seq=seq).first()
    # The call of a copied turn stands where it was made.
    if turn is not None and dialog.forked_from_id and (turn.position or 0) < dialog.own_from:
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


@dialog_page
def whole_turn(request: PersonRequest, dialog: Dialog, seq: int) -> HttpResponse:
    """Return one turn whole as plain text: what was said, or a call's arguments and result; with ``?text`` its
    text alone.

    Pages cut what is long.
    """
    turn = get_object_or_404(dialog.turns, seq=seq)
    if "text" in request.GET:
        return HttpResponse(turn.text, content_type="text/plain; charset=utf-8")
    asked, _ = calls_of(dialog, [turn]).get(turn.tool_call_id, (None, None))
    made = turn.tool_calls or ([asked] if asked else [])
    calls = [f"{call['name']} {call['arguments']}" for call in made]
    parts = [*calls, turn.text] if turn.role == Turn.Role.TOOL else [turn.text, *calls]
    return HttpResponse("\n\n".join(part for part in parts if part), content_type="text/plain; charset=utf-8")


@dialog_page
def export_markdown(request: PersonRequest, dialog: Dialog) -> HttpResponseBase:
    return send_export(dialog, "md")


@dialog_page
def export_json(request: PersonRequest, dialog: Dialog) -> HttpResponseBase:
    return send_export(dialog, "json")
