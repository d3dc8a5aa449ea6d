"""The page that takes conversations of other chats: first it shows what would be imported, and then it imports."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from dialogs.errors import Refusal
from dialogs.extras.imports.files import SAYS_WHAT_IS_KNOWN, UnknownExport
from dialogs.extras.imports.store import Imported, imported_since
from dialogs.extras.imports.upload import MOST_AT_ONCE, import_upload
from dialogs.models import Agent
from dialogs.views.answers import PersonRequest
from dialogs.views.forms import problems_of


class ImportForm(forms.Form):
    file = forms.FileField(label=gettext_lazy("Export"))
    agent = forms.ModelChoiceField(
        Agent.objects.filter(enabled=True).order_by("-is_default", "pk"), label=gettext_lazy("Agent"), empty_label=None
    )
    dry_run = forms.BooleanField(label=gettext_lazy("Only tell what would be imported"), required=False)


@login_required
@require_http_methods(["GET", "POST"])
def show(request: PersonRequest) -> HttpResponse:
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    results: list[Imported] = []
    if form.is_bound and form.is_valid():
        given = form.cleaned_data
        try:
            results = import_upload(given["file"], request.user, given["agent"], dry_run=given["dry_run"])
        except (UnknownExport, Refusal) as refusal:
            form.add_error("file", str(refusal).removesuffix(f" {SAYS_WHAT_IS_KNOWN}"))  # which the page lists
    if form.errors:
        messages.error(request, _("Nothing was imported. {reason}").format(reason=" ".join(problems_of(form))))
    context = {
        "form": form,
        "results": results,
        "taken": sum(not result.reason for result in results),
        "is_dry": form.is_bound and form.cleaned_data.get("dry_run"),
        "is_cut": sum(not result.reason for result in results) == MOST_AT_ONCE,
        "section": "dialogs",
    }
    return render(request, "dialogs/import.html", context, status=400 if form.errors else 200)


class ProgressForm(forms.Form):
    since = forms.DateTimeField(required=False)


@login_required
@require_GET
def progress(request: PersonRequest) -> HttpResponse:
    """Show how many conversations were imported ``since`` a time. The line refreshes itself while its page is open."""
    form = ProgressForm(request.GET)
    since = (form.is_valid() and form.cleaned_data["since"]) or timezone.now()
    context = {"since": since.isoformat(), "come": imported_since(request.user, since)}
    return render(request, "dialogs/_import_progress.html", context)
