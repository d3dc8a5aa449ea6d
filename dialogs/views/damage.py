"""What a person gets in place of a page whose dialog cannot be read: that it is damaged, and the ways out."""

from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from dialogs.errors import UNREADABLE

log = structlog.get_logger(__name__)


class SaysDamaged:
    """Middleware: an error over what is stored of one dialog ends in a page about that dialog."""

    sync_capable, async_capable = True, False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        found = request.resolver_match
        dialog_id = found.kwargs.get("dialog_id") if found else None
        if dialog_id is None or not isinstance(error, UNREADABLE):
            return None
        log.exception("dialog_unreadable", dialog_id=str(dialog_id), path=request.path, exc_info=error)
        return render(request, "dialogs/damaged.html", {"dialog_id": dialog_id}, status=500)
