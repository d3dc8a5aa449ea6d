"""Rewrites by hand of what the model sees: preview, rewrite, undo, archive."""

from contextlib import suppress
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dialogs.actions import rewrite_requests
from dialogs.actions.messages import visible_dialog
from dialogs.errors import Refusal
from dialogs.models import Dialog
from dialogs.pages import rewrite_page
from dialogs.pages.context_panel import run_lines
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.entries import address_of
from dialogs.pages.make_room import ways_of
from dialogs.pages.story import story_of, words_of_undo
from dialogs.queries import coherence, context_report, facts
from dialogs.views.answers import PersonRequest, changed_since, dialog_action, dialog_page, with_toast
from dialogs.views.forms import PackageForm, clean
from dominds.db.bounded import NewestFirst
from dominds.llm.catalog.catalog import UnknownModel
from remediation.context import UnitKind
from remediation.policies.registry import with_verb

ROWS = 50
STORY = 5  # acts that the popover shows


@login_required
@require_POST
def request(request: PersonRequest, dialog_id: UUID, kind: str) -> HttpResponseBase:
    """Ask for a rewrite. A page's script has put the policy's question; without scripts the preview is the
    question.
    """
    verb = kind.replace("-", "_")
    if not request.htmx and "confirmed" not in request.POST and with_verb(verb):
        dialog = visible_dialog(dialog_id, request.user)
        messages.warning(request, _("Nothing is done yet. This is what would go: confirm it below, or go back."))
        return redirect(f"/d/{dialog.pk}/context/?preview={verb}")
    return _request(request, dialog_id, verb=verb)


@dialog_action
def _request(request: PersonRequest, dialog: Dialog, verb: str) -> None:
    rewrite_requests.request(dialog.pk, verb, request.user)


@dialog_action
def complete_milestone(request: PersonRequest, dialog: Dialog) -> None:
    rewrite_requests.complete_milestone(dialog.pk, request.user)


@dialog_action
def clear(request: PersonRequest, dialog: Dialog) -> None:
    package = clean(PackageForm(request.POST))["reminder_content"]
    rewrite_requests.clear(dialog.pk, package.replace("\r\n", "\n"), request.user)


@dialog_action
def undo(request: PersonRequest, dialog: Dialog, run_id: int) -> HttpResponse | str:
    """Undo a rewrite, and say what is back. Other pages of the dialog hear of it in general words."""
    before = context_report.next_size(dialog)
    run = rewrite_requests.undo(run_id, request.user, dialog.pk)
    words = words_of_undo(run, before, context_report.next_size(Dialog.objects.get(pk=dialog.pk)))
    return with_toast(changed_since(request, dialog), words, subject="undo") if request.htmx else words


@dialog_page
def context(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Show what the model would see now, unit by unit; with ``preview``, what a rewrite would take away, without
    doing it.
    """
    policy = with_verb(request.GET.get("preview", ""))
    asked = policy.by_hand if policy else None
    page = DialogPage(dialog, request.user, request=request)
    shown: dict[str, object] = {"page": page, "asked": asked, "section": "dialogs"}
    try:
        shown |= _context_of_view(dialog, asked.verb if asked else "")
    except (Refusal, UnknownModel) as problem:
        shown["problem"] = str(problem)
    return render(request, "dialogs/context.html", shown)


@dialog_page
def predictions(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Return what a page shows of the ways to make room, and of what happened, once somebody looks."""
    page = DialogPage(dialog, request.user, request=request)
    weigh(page)
    pieces = [page.piece("best_way"), page.piece("ways"), page.piece("story", story=story_of(page, STORY))]
    return HttpResponse("".join(pieces))


def weigh(page: DialogPage) -> None:
    """Preview the ways to make room, where the person may take one."""
    if page.may_rewrite:
        with suppress(Refusal, UnknownModel):  # their own pages say why
            page.room = ways_of(page.dialog)


def _context_of_view(dialog: Dialog, verb: str) -> dict[str, object]:
    seen = context_report.context_of(dialog, verb)
    preview = seen.get("preview")
    goes = {unit["id"] for unit in preview["removed"]} if preview else set()
    makers = rewrite_page.makers_of(
        dialog, [unit["text"] for unit in seen["units"] if unit["kind"] == UnitKind.SUMMARY]
    )
    units = [
        {
            **unit,
            "goes": unit["id"] in goes,
            "why": _why(unit["points"]),
            "made_by": makers.get(unit["text"][: rewrite_page.SUMMARY_START]),
        }
        for unit in seen["units"]
    ]
    return {"seen": seen, "units": units, "preview": preview, "goes": len(goes)}


def _why(points: dict[str, float]) -> str:
    """Name the parts of a score: ``8 recency + 20 role``."""
    return " + ".join(f"{part:g} {cause}" for cause, part in points.items() if part)


@dialog_page
def archive(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """List everything that rewrites took out of the model's sight, searchable; nothing is ever deleted."""
    query = request.GET.get("q", "")
    hits = context_report.found_in_archive(dialog, query, ROWS) if query else []
    written = _in_markdown(dialog, [text.number for _, hit in hits for text in (hit.text, *hit.beside)])
    pages = NewestFirst(context_report.archive(dialog), ROWS, until=request.GET.get("until", ""))
    result = None if query else pages.get_page(request.GET.get("page") or 1)
    lines = run_lines(dialog, newest=ROWS + 1)[::-1]
    shown, by_run = [*(unit for unit, _ in hits), *(result or ())], {line.run.pk: line for line in lines}
    for unit in shown:
        unit.line = by_run.get(unit.run_id)
        unit.is_markdown = rewrite_page.is_markdown(unit)
    hits = [(unit, hit.without_marks(written)) for unit, hit in hits]
    rewrite_page.link_summaries(dialog, shown)
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "query": query,
        "hits": hits,
        "found": result,
        "lines": lines[:ROWS],
        "has_older_lines": len(lines) > ROWS,
        "section": "dialogs",
    }
    return render(request, "dialogs/archive.html", context)


def _in_markdown(dialog: Dialog, numbers: list[int]) -> set[int]:
    """Return those units of the archive that a model wrote."""
    units = context_report.archive(dialog).filter(pk__in=numbers).only("role", "kind") if numbers else ()
    return {unit.pk for unit in units if rewrite_page.is_markdown(unit)}


@dialog_page
def archived_run(request: PersonRequest, dialog: Dialog, run_id: int) -> HttpResponse:
    """Show one rewrite: what stood and what stands, aligned and page by page, and the fate of the facts in what
    went.
    """
    lines = run_lines(dialog, pk=run_id)
    if not lines:
        raise Http404
    run = lines[0].run
    run.coherence = coherence.measure(run.pk)
    pieces = rewrite_page.align(run.view, run.removed)
    result = Paginator(pieces, rewrite_page.ROWS).get_page(request.GET.get("page") or 1)
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "place": address_of(dialog, run.base_position, f"run-{run.pk}"),
        "line": lines[0],
        "found": result,
        "rows": rewrite_page.lines_of(run, dialog, pieces, result.number),
        "kept_units": len(run.view),
        "facts": facts.measure(run.pk),
        "section": "dialogs",
    }
    return render(request, "dialogs/archived_run.html", context)
