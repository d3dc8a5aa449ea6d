"""Views that send messages, show images, and act on a whole dialog: stop, retry, rename, move, change model, close."""

from collections.abc import Iterator
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dialogs.actions import access, attachments, folders, messages, model_choice
from dialogs.api.attachments import image_answer, image_of
from dialogs.errors import Invalid, RateLimited, Refusal
from dialogs.models import Dialog
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.home import choosable_models
from dialogs.pages.remote_image import remote_image as fetched_image
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.answers import (
    PersonRequest,
    changed_pieces,
    dialog_action,
    dialog_page,
    show_piece,
    with_retry_after,
)
from dialogs.views.dialogs import show_page
from dialogs.views.forms import MessageForm, RegenerateForm, clean
from dominds.budgets import ATTACHMENT_BYTES


@login_required
@require_POST
def post_message(request: PersonRequest, dialog_id: UUID) -> HttpResponse:
    """Accept a message. A worker answers it, and the page hears about both through its socket."""
    dialog = access.visible_dialog(dialog_id, request.user)
    # The text is not stripped, so that a refusal shows it as it was typed.
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        access.check_may_act(dialog, request.user)
        message_id = clean(MessageForm(request.POST))["client_message_id"]
        attached = attachments.check_files(files_of(request))
        messages.post_message(dialog, text, message_id or None, author=request.user, attached=attached)
    except Refusal as refusal:
        return _refuse(request, dialog, text, refusal)
    return changed_pieces(request, dialog) if request.htmx else redirect(f"/d/{dialog_id}/#latest")


def files_of(request: PersonRequest) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of attached files, without reading more than may be attached."""
    for file in request.FILES.getlist("attachments"):
        yield file.name or "", file.read(ATTACHMENT_BYTES.most + 1)


@dialog_page
def image(request: PersonRequest, dialog: Dialog, sha256: str) -> HttpResponse:
    return image_of(dialog, sha256)


@dialog_page
def remote_image(request: PersonRequest, dialog: Dialog, seq: int) -> HttpResponse:
    """Fetch an image that an answer links to, once a person clicked it. On failure the page shows the link again."""
    try:
        result = fetched_image(dialog, seq, request.GET.get("address", ""), request.user.pk)
    except (Invalid, RateLimited) as refusal:
        answer = HttpResponse(refusal.message, status=refusal.status, content_type="text/plain; charset=utf-8")
        return with_retry_after(answer, refusal)
    return image_answer(result.name, result.media_type, result.content)


def _refuse(request: PersonRequest, dialog: Dialog, text: str, refusal: Refusal) -> HttpResponse:
    """Show the reason beside the composer, and keep the text."""
    dialog.refresh_from_db()
    page = DialogPage(dialog, request.user, sending_error=in_plain_words(refusal.message), text=text, request=request)
    if request.htmx:
        answer = HttpResponse(page.piece("sending_error") + page.piece("composer_state"), status=refusal.status)
    else:
        answer = show_page(request, page)
        answer.status_code = refusal.status
    return with_retry_after(answer, refusal)


@dialog_action
def remove_queued(request: PersonRequest, dialog: Dialog, seq: int) -> None:
    messages.remove_queued(dialog.pk, seq, request.user)


@dialog_action
def stop(request: PersonRequest, dialog: Dialog) -> None:
    messages.stop(dialog.pk, request.user)


@dialog_action
def retry(request: PersonRequest, dialog: Dialog) -> None:
    messages.retry(dialog.pk, request.user)


@dialog_action
def rename(request: PersonRequest, dialog: Dialog) -> None:
    messages.rename(dialog.pk, request.POST.get("title", ""), request.user)


@dialog_action
def pin(request: PersonRequest, dialog: Dialog) -> None:
    folders.pin(dialog, request.user, pinned=request.POST.get("pinned") == "yes")


@dialog_action
def move(request: PersonRequest, dialog: Dialog) -> None:
    folders.move(dialog, request.user, request.POST.get("folder", ""))


@dialog_page
def models(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    """List the models that could answer in the dialog, on a page of its own for browsers without scripts."""
    page = DialogPage(dialog, request.user, request=request)
    context = {"page": page, "models": choosable_models(dialog.provider_id)}
    up, heading = reverse("dialog", args=[dialog.pk]), _("Choose the model")
    return show_piece(request, "dialogs/_models.html", context, heading=heading, up=up, holder="picker-list")


@dialog_action
def choose_model(request: PersonRequest, dialog: Dialog) -> str:
    provider, _slash, model = clean(RegenerateForm(request.POST))["model"].partition("/")
    if model_choice.choose(dialog.pk, provider, model, request.user):
        return ""
    return _("{model} answers here already.").format(model=dialog.model_id)


@dialog_action
def close(request: PersonRequest, dialog: Dialog) -> None:
    messages.close(dialog.pk, request.user)
