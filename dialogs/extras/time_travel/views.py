"""Views of any model call of a dialog: its request as it was sent, all calls on one line, and two requests
compared.
"""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from dialogs.api.lists import number_in
from dialogs.extras.time_travel.drawing import draw
from dialogs.extras.time_travel.moments import MOST, moment_of, moments
from dialogs.extras.time_travel.request_diff import diff
from dialogs.extras.time_travel.sent_requests import sent_request
from dialogs.models import Dialog, Generation
from dialogs.pages.dialog_page import DialogPage
from dialogs.views.answers import PersonRequest, dialog_page

PIECES = 50  # of a request on one page
LARGEST = 9_223_372_036_854_775_807  # of a row's number


@dialog_page
def timeline(request: PersonRequest, dialog: Dialog) -> HttpResponse:
    shown = moments(dialog, number_in(request.GET.get("before")))
    context = {
        "drawing": draw(shown),
        "newest_first": shown[::-1],
        "older": shown[0].generation.pk if len(shown) == MOST else None,
        "is_newest": "before" not in request.GET,
    }
    return _page(request, dialog, "dialogs/timeline.html", context)


@dialog_page
def call(request: PersonRequest, dialog: Dialog, generation_id: int) -> HttpResponse:
    """Show one call's request, by category and in its order."""
    generation = _generation(dialog, generation_id)
    sent = sent_request(generation)
    numbers = dialog.generations.values_list("pk", flat=True)
    before = numbers.filter(pk__lt=generation.pk).order_by("-pk").first()
    after = numbers.filter(pk__gt=generation.pk).order_by("pk").first()
    context = {
        "generation": generation,
        "moment": moment_of(generation),
        "sent": sent,
        "found": Paginator(sent.pieces, PIECES).get_page(request.GET.get("page") or 1),
        "before": before,
        "after": after,
        "other": before or after or generation.pk,
        "rewrite": int(generation.base.partition(":")[2] or 0),
    }
    return _page(request, dialog, "dialogs/call.html", context)


@dialog_page
def compare(request: PersonRequest, dialog: Dialog, generation_id: int) -> HttpResponse:
    """Show this call's request beside that of the call ``with``."""
    first, second = sorted((generation_id, number_in(request.GET.get("with")) or 0))
    before, after = _generation(dialog, first), _generation(dialog, second)
    left, right = sent_request(before), sent_request(after)
    context = {"before": before, "after": after, "sides": (left, right), "diff": diff(left.pieces, right.pieces)}
    return _page(request, dialog, "dialogs/compare.html", context)


def _generation(dialog: Dialog, pk: int) -> Generation:
    return get_object_or_404(dialog.generations.select_related("snapshot"), pk=min(pk, LARGEST))


def _page(request: PersonRequest, dialog: Dialog, template: str, context: dict[str, Any]) -> HttpResponse:
    page = DialogPage(dialog, request.user, request=request)
    return render(request, template, {**context, "page": page, "section": "dialogs"})
