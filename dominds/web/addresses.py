"""Addresses that no page can have."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware


@sync_only_middleware
def readable_only(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse half of a surrogate pair: no name holds one, and neither database nor log can write it."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        try:
            request.path.encode()
        except UnicodeEncodeError:
            return HttpResponse("The address holds half of a character.\n", status=400, content_type="text/plain")
        return get_response(request)

    return answer
