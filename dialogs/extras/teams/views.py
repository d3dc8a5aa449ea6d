"""The panel of a team on the pages of its dialogs, and the page of its task document."""

from itertools import pairwise
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dialogs.actions import access, messages
from dialogs.errors import NotFound, Refusal
from dialogs.extras.teams import task_document
from dialogs.extras.teams.models import SideDialog, TaskRevision
from dialogs.extras.teams.team import team_of
from dialogs.models import Dialog
from dialogs.pages.dialog_page import DialogPage
from dialogs.views.answers import PersonRequest, dialog_action, dialog_page, refuse

REVISIONS_SHOWN = 30


@dialog_page
def panel(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Return the panel as it is now; a page asks for it while somebody works."""
    return HttpResponse(DialogPage(dialog, request.user, request=request).piece("team_panel"))


@dialog_action
def end(request: PersonRequest, dialog: Dialog, side_id: UUID) -> None:
    """End one side dialog of the team that this dialog belongs to; its parent reads that a person did so."""
    team = team_of(dialog)
    if team is None or not SideDialog.objects.filter(pk=side_id, root=team.root).exists():
        raise NotFound
    messages.close(side_id, request.user)


@login_required
@require_http_methods(["GET", "POST"])
def task(request: PersonRequest, dialog_id: UUID) -> HttpResponse:
    """Show the task document of a team with its history, and write what a person edits or restores."""
    dialog = access.visible_dialog(dialog_id, request.user)
    if request.method == "POST":
        try:
            _write(request, access.writable_dialog(dialog_id, request.user))
        except Refusal as refusal:
            return refuse(request, refusal, reverse("task-document", args=[dialog_id]))
        return redirect("task-document", dialog_id=dialog_id)
    root_id = task_document.root_of(dialog)
    rows = TaskRevision.objects.filter(root=root_id).select_related("author", "by_dialog__agent")
    revisions = [*rows[: REVISIONS_SHOWN + 1], TaskRevision(version=0, sections=task_document.NOTHING)]
    changes = [(new, task_document.difference(old.sections, new.sections)) for new, old in pairwise(revisions)]
    now = task_document.newest(root_id)
    context = {
        "dialog": dialog,
        "revision": now,
        "parts": [(name, title, now.sections.get(name, "")) for name, title in task_document.SECTIONS.items()],
        "changes": changes[:REVISIONS_SHOWN],
        "section": "dialogs",
    }
    return render(request, "dialogs/task_document.html", context)


def _write(request: PersonRequest, dialog: Dialog) -> None:
    given = request.POST
    version, old = (int(given[name]) if given.get(name, "").isdecimal() else -1 for name in ("version", "restore"))
    if old >= 0:
        task_document.restore(dialog, old, version, request.user)
    else:
        text = given.get("text", "").replace("\r\n", "\n")
        task_document.edit(dialog, given.get("part", ""), text, version, request.user)
