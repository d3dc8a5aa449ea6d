"""The former addresses of the timeline and of its calls, which redirect to the context."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dialogs.models import Dialog
from dialogs.views.answers import PersonRequest, dialog_page
from dialogs.views.context import led_to_context as timeline

__all__ = ["call", "timeline"]


@dialog_page
def call(request: PersonRequest, dialog: Dialog, generation_id: int) -> HttpResponse:
    """Redirect to one call's request on the context page, beside another one if the address names it."""
    asked = request.GET.copy()
    asked["at"] = str(generation_id)
    return redirect(f"{reverse('context', args=[dialog.pk])}?{asked.urlencode()}")
