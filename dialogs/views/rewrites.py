"""Views of rewrites by hand: preview, rewrite, undo, archive."""

from contextlib import suppress
from dataclasses import replace

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dialogs.actions import rewrite_requests
from dialogs.errors import Refusal
from dialogs.models import Dialog
from dialogs.pages import rewrite_page
from dialogs.pages.context_page import ContextPage
from dialogs.pages.context_panel import run_lines
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.make_room import ways_of
from dialogs.pages.story import act_of, story_of, words_of_clear_undone, words_of_undo
from dialogs.queries import context_report, facts
from dialogs.views.answers import PersonRequest, dialog_action, dialog_page
from dialogs.views.forms import PackageForm, clean
from dominds.llm.catalog.catalog import UnknownModel
from remediation.policies.registry import with_verb

ROWS = 50
STORY, LONG_STORY = 5, 50  # acts in the popover, and on the page of the context


@dialog_action
def request(request: PersonRequest, dialog: Dialog, kind: str) -> HttpResponse | None:
    """Request a rewrite.

    A page with scripts asks for confirmation itself. Without scripts, the preview is shown first, and its button sends
    ``confirmed``.
    """
    verb = kind.replace("-", "_")
    if not request.htmx and "confirmed" not in request.POST and with_verb(verb):
        messages.warning(request, _("Nothing is done yet. This is what would go: confirm it below, or go back."))
        return redirect(f"/d/{dialog.pk}/context/?preview={verb}")
    rewrite_requests.request(dialog.pk, verb, request.user)
    return None


@dialog_action
def complete_milestone(request: PersonRequest, dialog: Dialog) -> None:
    rewrite_requests.complete_milestone(dialog.pk, request.user)


@dialog_action
def clear(request: PersonRequest, dialog: Dialog) -> None:
    package = clean(PackageForm(request.POST))["reminder_content"]
    rewrite_requests.clear(dialog.pk, package.replace("\r\n", "\n"), request.user)


@dialog_action
def undo(request: PersonRequest, dialog: Dialog, run_id: int | None = None) -> str:
    """Undo this rewrite, or the newest clear if ``run_id`` is None, and return a sentence about what came back."""
    if run_id is None:
        return words_of_clear_undone(rewrite_requests.undo_clear(dialog.pk, request.user, context_report.next_size))
    before = context_report.next_size(dialog)
    run = rewrite_requests.undo(run_id, request.user, dialog.pk)
    after = context_report.next_size(Dialog.objects.get(pk=dialog.pk))
    return words_of_undo(run, before, after)


@dialog_page
def predictions(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Render the ways to make room and the story, which are computed only when somebody looks at them."""
    page = DialogPage(dialog, request.user, request=request)
    weigh(page)
    own = on_own_page(request)
    story = story_of(page, ContextPage(page, {}).visible, LONG_STORY if own else STORY)
    pieces = [page.piece(name, own_page=own, story=story) for name in ("best_way", "ways", "story")]
    return HttpResponse("".join(pieces))


def on_own_page(request: PersonRequest) -> bool:
    """Check whether the response is shown on the page of the context, rather than beside a conversation."""
    return not request.htmx or "/context/" in (request.htmx.current_url or "")


def weigh(page: DialogPage) -> None:
    """Preview the ways to make room, if the person may take one."""
    if page.may_rewrite:
        with suppress(Refusal, UnknownModel):  # then no ways are shown; the next request's moment says why
            page.room = ways_of(page.dialog)


@dialog_page
def archived_run(request: PersonRequest, dialog: Dialog, run_id: int) -> HttpResponse:
    """Show one rewrite: the context before and after it side by side, in pages, and the fate of the removed facts."""
    lines = run_lines(dialog, pk=run_id)
    if not lines:
        raise Http404
    run = lines[0].run
    pieces = rewrite_page.align(run.view, run.removed)
    result = Paginator(pieces, rewrite_page.ROWS).get_page(request.GET.get("page") or 1)
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "act": replace(act_of(dialog, lines[0]), more=None),  # its link leads to this page
        "line": lines[0],
        "found": result,
        "rows": rewrite_page.lines_of(run, dialog, pieces, result.number),
        "kept_units": len(run.view),
        "facts": facts.measure(run.pk),
        "section": "dialogs",
    }
    return render(request, "dialogs/archived_run.html", context)
