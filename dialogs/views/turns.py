"""Actions on one turn: copying, branching off, rating, pinning, and the turns recalled into its request."""

from collections.abc import Callable
from functools import wraps
from uuid import UUID, uuid4

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dialogs.actions import forks, turn_marks
from dialogs.actions.access import check_may_act, visible_dialog
from dialogs.actions.attachments import text_typed
from dialogs.context.limits import other_models
from dialogs.errors import Forbidden, Refusal
from dialogs.models import Dialog, Turn
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.entries import address_of
from dialogs.pages.recalled import recalled_turns
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.answers import PersonRequest, View, dialog_action, dialog_page, refuse, show_piece, with_toast
from dialogs.views.forms import EditForm, RegenerateForm, TurnForm, clean


@dialog_page
def place(request: PersonRequest, dialog: Dialog, position: int) -> HttpResponse:
    """Redirect to the dialog's page with this place of the conversation, or to its end if the dialog is shorter."""
    seq = dialog.turns.filter(position=position).values_list("seq", flat=True).first()
    return redirect(f"/d/{dialog.pk}/#latest" if seq is None else address_of(dialog, position, f"turn-{seq}"))


@dialog_page
def actions(request: PersonRequest, dialog: Dialog, seq: int) -> HttpResponse:
    """Show the menu of a turn, as a page of its own for browsers without scripts."""
    return _menu(request, dialog, seq)


def _menu(request: PersonRequest, dialog: Dialog, seq: int, text: str = "", problem: str = "") -> HttpResponse:
    turns = dialog.turns.select_related("generation").filter(position__isnull=False)
    turn = get_object_or_404(turns.exclude(role=Turn.Role.NOTICE), seq=seq)
    page = DialogPage(dialog, request.user, request=request)
    context = {
        "page": page,
        "turn": turn,
        "may_act": _may_act(dialog, request),
        "is_pinned": dialog.recall_choices.filter(seq=seq, choice="pinned").exists(),
        "is_copied": (turn.position or 0) < dialog.own_from,
        "models": other_models(dialog),
        "request_id": str(uuid4()),
        "text": text or text_typed(turn.text, turn.attachments),
        "problem": problem,
    }
    up = address_of(dialog, turn.position or 0, f"turn-{seq}")
    return show_piece(request, "dialogs/_turn_menu.html", context, heading=_("One turn"), up=up, holder="menu")


def _may_act(dialog: Dialog, request: PersonRequest) -> bool:
    try:
        check_may_act(dialog, request.user)
    except Forbidden:
        return False
    return True


def _branch_action(view: Callable[[PersonRequest, forks.Branch], Dialog]) -> View:
    """Wrap a POST that makes a branch, and redirect to it."""

    @login_required
    @require_POST
    @wraps(view)
    def act(request: PersonRequest, dialog_id: UUID) -> HttpResponse:
        dialog = visible_dialog(dialog_id, request.user)
        form = TurnForm(request.POST)
        try:
            check_may_act(dialog, request.user)
            given = clean(form)
            made = view(request, forks.Branch(dialog_id, given["seq"], request.user, given["request_id"]))
        except Refusal as refusal:
            if form.is_valid() and "text" in request.POST and not request.htmx:  # else the typed text would be lost
                return _refused_text(request, dialog, form.cleaned_data["seq"], refusal)
            return refuse(request, refusal, f"/d/{dialog_id}/")
        address = reverse("place", args=[made.pk, made.own_from])
        return HttpResponse(status=204, headers={"HX-Redirect": address}) if request.htmx else redirect(address)

    return act


def _refused_text(request: PersonRequest, dialog: Dialog, seq: int, refusal: Refusal) -> HttpResponse:
    answer = _menu(request, dialog, seq, request.POST["text"], in_plain_words(refusal.message))
    answer.status_code = refusal.status
    return answer


@_branch_action
def fork(request: PersonRequest, branch: forks.Branch) -> Dialog:
    return forks.fork(branch)


@_branch_action
def regenerate(request: PersonRequest, branch: forks.Branch) -> Dialog:
    provider, _, model = clean(RegenerateForm(request.POST))["model"].partition("/")
    return forks.regenerate(branch, provider, model)


@_branch_action
def edit(request: PersonRequest, branch: forks.Branch) -> Dialog:
    return forks.edit(branch, clean(EditForm(request.POST))["text"].replace("\r\n", "\n"))


@dialog_action
def rate(request: PersonRequest, dialog: Dialog) -> None:
    turn_marks.rate(dialog.pk, clean(TurnForm(request.POST))["seq"], request.POST.get("feedback", ""))


@dialog_action
def pin(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """Pin a turn, so that each request recalls it, or leave the choice to the runtime."""
    choice, seq = request.POST.get("choice", ""), clean(TurnForm(request.POST))["seq"]
    turn_marks.choose_recall(dialog.pk, seq, choice)
    if request.htmx:
        pinned = _("Pinned: recalled first in each request.")
        return with_toast(HttpResponse(), pinned if choice else _("Not pinned any more."))
    return redirect("turn-actions", dialog_id=dialog.pk, seq=seq)


@dialog_page
def show_recalled(request: PersonRequest, dialog: Dialog, generation_id: int) -> HttpResponse:
    """Show what was recalled, on a page of its own, or as a list within a dialog's page."""
    return _list_recalled(request, dialog, generation_id)


@login_required
@require_POST
def choose_recall(request: PersonRequest, dialog_id: UUID, generation_id: int, seq: int) -> HttpResponse:
    dialog = visible_dialog(dialog_id, request.user)
    try:
        check_may_act(dialog, request.user)
        turn_marks.choose_recall(dialog.pk, seq, request.POST.get("choice", ""))
    except Refusal as refusal:
        return refuse(request, refusal, f"/d/{dialog_id}/recalled/{generation_id}/")
    if request.htmx:
        return _list_recalled(request, dialog, generation_id)
    return redirect("recalled", dialog_id=dialog_id, generation_id=generation_id)


def _list_recalled(request: PersonRequest, dialog: Dialog, generation_id: int) -> HttpResponse:
    generation = get_object_or_404(dialog.generations, pk=generation_id)
    context = {
        "page": DialogPage(dialog, request.user, request=request),
        "generation": generation,
        "recalled": recalled_turns(dialog, generation),
    }
    lead = _(
        "The model no longer saw these turns. The runtime showed them again in one request, because they bear on the "
        "message that was answered."
    )
    up = reverse("dialog", args=[dialog.pk])
    return show_piece(request, "dialogs/_recalled.html", context, heading=_("Recalled passages"), up=up, lead=lead)
