"""Views of a dialog's context: its requests over time, the parts of one of them, and the dialog as a file."""

from dataclasses import replace
from typing import Any, Literal

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from dialogs.api.dialogs import send_export
from dialogs.api.lists import number_in
from dialogs.models import Dialog, Generation, Turn
from dialogs.pages import rewrite_page
from dialogs.pages.context_page import IN_PANE, ContextPage
from dialogs.pages.context_panel import run_lines
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.entries import calls_of
from dialogs.pages.story import story_of
from dialogs.queries import context_report
from dialogs.queries.moments import moments_of
from dialogs.views.answers import PersonRequest, dialog_page
from dialogs.views.rewrites import LONG_STORY, on_own_page, weigh
from dominds.db.bounded import NewestFirst

ROWS = 50


@dialog_page
def context(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Show a dialog's requests over time, one of them in full, what happened, and how to make room.

    ``preview`` in the address names a rewrite, and the page then shows what it would remove.
    """
    page = DialogPage(dialog, request.user, request=request)
    pane = ContextPage(page, request.GET)
    shown: dict[str, Any] = {"page": page, "pane": pane, "section": "dialogs", "own_page": on_own_page(request)}
    if request.htmx and request.htmx.target == "moment":
        return render(request, "dialogs/_moment.html", shown)
    asked, query = request.GET.get("preview", ""), request.GET.get("q", "")
    # Without a preview a script fetches the ways to make room: previewing them takes seconds if the context is long.
    if asked:
        weigh(page)
        for way in page.room.all if page.room else ():
            if page.room and way.hand.verb == asked:
                page.room, shown["asked"] = replace(page.room, best=way), way.hand.button
    rows = Generation.objects.newest_of(dialog.pk).select_related("snapshot")
    calls = NewestFirst(rows, ROWS, until=request.GET.get("until", "")).get_page(request.GET.get("page") or 1)
    shown |= {
        "story": story_of(page, (ContextPage(page, {}) if pane.before else pane).visible, LONG_STORY),
        "calls": calls,
        "rows": moments_of(list(calls)),
        "is_paging": bool({"page", "until"} & request.GET.keys()),
        "query": query,
        "hits": _hits(dialog, query) if query else [],
    }
    return render(request, "dialogs/context.html", shown)


def _hits(dialog: Dialog, query: str) -> list[tuple[Any, Any]]:
    """Return the archived units that hold these words, each with its hit. ``line`` of a unit is the rewrite that
    removed it, and ``made_by`` the one that wrote it, if it is a summary.
    """
    found = context_report.found_in_archive(dialog, query, ROWS)
    numbers = [text.number for _, hit in found for text in (hit.text, *hit.beside)]
    beside = context_report.archive(dialog).filter(pk__in=numbers).only("role", "kind") if numbers else ()
    written = {unit.pk for unit in beside if rewrite_page.is_markdown(unit)}
    units: list[Any] = [unit for unit, _ in found]
    lines = {line.run.pk: line for line in run_lines(dialog, pk__in={unit.run_id for unit in units})}
    makers = rewrite_page.makers_of(dialog, [unit.text for unit in units if rewrite_page.is_summary(unit)])
    for unit in units:
        unit.about, unit.line, unit.made_by = rewrite_page.about(unit), lines.get(unit.run_id), makers.get(unit.text)
    return [(unit, hit.without_marks(written)) for unit, hit in found]


@dialog_page
def details(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Render the pane beside a conversation. It weighs the whole context, so pages fetch it only while visible."""
    if request.headers.get("Sec-Fetch-Dest") == "document":  # somebody opens the address
        return redirect("context", dialog_id=dialog.pk)
    page = DialogPage(dialog, request.user, request=request)
    pane = ContextPage(page, request.GET, IN_PANE)
    return HttpResponse(page.piece("context_panel") + page.piece("context", pane=pane))


@dialog_page
def text(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Return the full text of one piece of a request, as plain text."""
    pane = ContextPage(DialogPage(dialog, request.user), request.GET)
    number = number_in(request.GET.get("piece"))
    pieces = pane.request.pieces if pane.request else ()
    if number is None or number >= len(pieces):
        raise Http404
    return HttpResponse(pieces[number].text, content_type="text/plain; charset=utf-8")


@dialog_page
def led_to_context(request: PersonRequest, dialog: Dialog, generation_id: int | None = None) -> HttpResponse:
    """Redirect a former address, of the context or of one call, to the context page, with its query."""
    asked = request.GET.copy()
    if generation_id is not None:
        asked["at"] = str(generation_id)
    return redirect(f"{reverse('context', args=[dialog.pk])}{'?' if asked else ''}{asked.urlencode()}")


@dialog_page
def usage(request: PersonRequest, dialog: Dialog, seq: int) -> HttpResponse:
    """Redirect to the request that led to one turn, from which the numbers under the turn come."""
    turn = dialog.turns.filter(seq=seq).first()
    # The generation of a copied turn belongs to the dialog from which the turn was copied.
    if turn is not None and dialog.forked_from_id and (turn.position or 0) < dialog.own_from:
        return redirect("usage", dialog_id=dialog.forked_from_id, seq=seq)
    if turn is None or turn.generation_id is None:
        raise Http404
    return redirect(f"{reverse('context', args=[dialog.pk])}?at={turn.generation_id}")


@dialog_page
def whole_turn(request: PersonRequest, dialog: Dialog, seq: int) -> HttpResponse:
    """Return one whole turn as plain text, since pages cut long turns: its text and its calls, or a call and its
    result. With ``?text``, return the text alone.
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
def export(request: PersonRequest, dialog: Dialog, form: Literal["md", "json"]) -> HttpResponseBase:
    return send_export(dialog, form)
