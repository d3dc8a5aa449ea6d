"""The first page: its composer, and the message that makes a dialog."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.views.decorators.http import require_GET, require_POST

from dialogs.accounts.login import lacks_a_way_in
from dialogs.actions import attachments
from dialogs.actions.messages import start_dialog
from dialogs.errors import Refusal
from dialogs.pages import glossary as words
from dialogs.pages.home import HomePage
from dialogs.templatetags.stored_sentences import in_plain_words
from dialogs.views.answers import PersonRequest, with_retry_after
from dialogs.views.forms import NewDialogForm, clean
from dialogs.views.messages import files_of


@login_required
@require_GET
def home(request: PersonRequest) -> HttpResponse:
    """Show the first page. It used to be the list of dialogs, so addresses with filters redirect there."""
    if request.GET.keys() & {"q", "state", "owner", "page"}:
        return redirect(f"{reverse('dialogs')}?{request.GET.urlencode()}")
    page = HomePage(request.user, request.GET.get("agent", ""), text=request.GET.get("text", ""))
    page.sending_error = in_plain_words(page.missed)
    return _show(request, page)


def _show(request: PersonRequest, page: HomePage, status: int = 200) -> HttpResponse:
    # The page asks for one thing at a time: first for a model, then for a password.
    lacks_password = not page.offers_connection and lacks_a_way_in(request.user)
    context = {"page": page, "lacks_password": lacks_password, "section": "home"}
    return render(request, "dialogs/home.html", context, status=status)


@login_required
@require_POST
def create(request: PersonRequest) -> HttpResponse:
    """Make a dialog from its first message, and go there. After a refusal nothing is made, and the text stays."""
    text = (request.POST.get("text") or request.POST.get("suggestion", "")).replace("\r\n", "\n")
    page = HomePage(request.user, request.POST.get("agent", ""), request.POST.get("model", ""), text)
    try:
        given = clean(NewDialogForm(request.POST))
        message_id = given["client_message_id"] or page.new_message_id
        attached = attachments.check_files(files_of(request))
        dialog = start_dialog(request.user, given["agent"], given["model"], text, message_id, attached)
    except Refusal as refusal:
        page.sending_error = in_plain_words(refusal.message)
        if not request.htmx:
            return with_retry_after(_show(request, page, refusal.status), refusal)
        piece = render_to_string("dialogs/_sending_error.html", {"page": page})
        return with_retry_after(HttpResponse(piece, status=refusal.status), refusal)
    address = reverse("dialog", args=[dialog.pk])
    return HttpResponse(headers={"HX-Redirect": address}) if request.htmx else redirect(address)


@login_required
@require_GET
def glossary(request: PersonRequest) -> HttpResponse:
    return render(
        request, "glossary.html", {"groups": words.groups(translation.get_language() or "en"), "section": "glossary"}
    )
