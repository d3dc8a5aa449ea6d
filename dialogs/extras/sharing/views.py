"""The form of sharing a dialog, and the page for holders of its link."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from dialogs.actions import sharing
from dialogs.actions.access import visible_dialog
from dialogs.api.attachments import image_of
from dialogs.errors import NotFound, Refusal
from dialogs.models import Dialog
from dialogs.pages.entries import all_entries
from dialogs.permissions import may_share
from dialogs.views.answers import PersonRequest, refuse
from dialogs.views.dialogs import before_of
from dialogs.views.forms import clean


class SharingForm(forms.Form):
    """The form of sharing. ``group`` is a name, or empty for nobody."""

    action = forms.ChoiceField(choices=[("group", "Save"), ("link", "Make a link"), ("revoke", "Take back")])
    group = forms.CharField(max_length=150, required=False, strip=False)


@login_required
@require_http_methods(["GET", "POST"])
def show(request: PersonRequest, dialog_id: UUID) -> HttpResponse:
    dialog = visible_dialog(dialog_id, request.user)
    if request.method == "POST":
        try:
            messages.success(request, _apply(request, dialog))
        except Refusal as refusal:
            return refuse(request, refusal, reverse("sharing", args=[dialog_id]))
        return redirect("sharing", dialog_id=dialog_id)
    own = request.user.groups.order_by("name").values_list("name", flat=True)
    current = dialog.group.name if dialog.group else ""
    path = reverse("shared", args=[sharing.token_of(dialog)]) if dialog.link else ""
    context = {
        "dialog": dialog,
        "may_share": may_share(request.user, dialog),
        "current": current,
        "groups": sorted({*own, *([current] if current else [])}),
        "path": path,
        "address": request.build_absolute_uri(path),
        "section": "dialogs",
    }
    return render(request, "dialogs/sharing.html", context)


def _apply(request: PersonRequest, dialog: Dialog) -> str:
    """Apply the form, and say what was done."""
    given = clean(SharingForm(request.POST))
    match given["action"]:
        case "link":
            sharing.make_link(dialog.pk, request.user)
            return _("Anyone with the link can read this dialog now.")
        case "revoke":
            sharing.revoke_link(dialog.pk, request.user)
            return _("The link shows nothing any more.")
    sharing.share(dialog.pk, given["group"], request.user)
    if given["group"]:
        return _("Shared with {group}.").format(group=given["group"])
    return _("Only its owner sees this dialog now.")


@require_GET
def show_shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show the conversation to any holder of the link, without navigation or buttons, even if they are logged in."""
    try:
        dialog = sharing.dialog_of_link(token)
    except NotFound:
        return render(request, "dialogs/not_shared.html", {"user": AnonymousUser()}, status=404)
    entries, older = all_entries(dialog, before_of(request))
    context = {"dialog": dialog, "entries": entries, "older": older, "user": AnonymousUser()}
    context["images_at"] = f"{request.path}images/"
    answer = render(request, "dialogs/shared.html", context)
    answer["Cache-Control"] = "no-store"
    answer["X-Robots-Tag"] = "noindex, nofollow"
    return answer


@require_GET
def image(request: HttpRequest, token: str, sha256: str) -> HttpResponse:
    answer = image_of(sharing.dialog_of_link(token), sha256)
    answer["Cache-Control"] = "no-store"  # unlike the owner's: the link may be taken back
    answer["X-Robots-Tag"] = "noindex"
    return answer
