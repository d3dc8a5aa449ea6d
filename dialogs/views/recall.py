"""What came back into one request, and a person's decisions about it."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from dialogs.actions import recall_choices
from dialogs.errors import Refusal
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.recalled import recalled_turns
from dialogs.views.answers import PersonRequest, dialog_or_404, refused


@login_required
@require_GET
def recalled(request: PersonRequest, dialog_id: UUID, generation_id: int) -> HttpResponse:
    """A page of its own; within a dialog's page the list alone."""
    return _listed(request, dialog_id, generation_id)


@login_required
@require_POST
def choose(request: PersonRequest, dialog_id: UUID, generation_id: int, seq: int) -> HttpResponse:
    dialog = dialog_or_404(dialog_id, request.user)
    try:
        recall_choices.choose(dialog.pk, seq, request.POST.get("choice", ""))
    except Refusal as refusal:
        return refused(request, refusal, f"/d/{dialog_id}/recalled/{generation_id}/")
    if request.htmx:
        return _listed(request, dialog_id, generation_id)
    return redirect("recalled", dialog_id=dialog_id, generation_id=generation_id)


def _listed(request: PersonRequest, dialog_id: UUID, generation_id: int) -> HttpResponse:
    dialog = dialog_or_404(dialog_id, request.user)
    generation = dialog.generations.filter(pk=generation_id).first()
    if generation is None:
        raise Http404
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "generation": generation,
        "recalled": recalled_turns(dialog, generation),
        "section": "dialogs",
    }
    return render(request, "dialogs/_recalled.html" if request.htmx else "dialogs/recalled.html", context)
