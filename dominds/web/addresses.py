"""Addresses that no page can have."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware


@sync_only_middleware
def readable_only(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse NUL and half of a surrogate pair: no name holds them, and they cannot be stored or logged."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        try:
            request.path.encode()
        except UnicodeEncodeError:
            return HttpResponse("The address holds half of a character.\n", status=400, content_type="text/plain")
        if "\x00" in request.path:
            return HttpResponse("The address holds a NUL character.\n", status=400, content_type="text/plain")
        return get_response(request)

    return answer
