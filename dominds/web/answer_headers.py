"""Headers that OpenAI's clients read in every answer: its id, as in the log, and the rest of a limit, where one
applies."""

from contextvars import ContextVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware
from structlog.contextvars import get_contextvars

from dominds.web.middleware import Handler

_left: ContextVar[tuple[int, int] | None] = ContextVar("left_of_limit", default=None)


def note_limit(per_minute: int, used: int) -> None:
    """Note a limit for the answer's headers. ``used`` counts the requests of the last minute, this one included."""
    _left.set((per_minute, max(0, per_minute - used)))


@sync_only_middleware
def with_headers(get_response: Handler) -> Handler:
    """Add the headers, as a middleware behind the one that gives requests their ids."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        before = _left.set(None)  # threads go on to other requests
        try:
            response = get_response(request)
            if request_id := get_contextvars().get("request_id"):
                response["X-Request-Id"] = str(request_id)
            if left := _left.get():
                response["X-RateLimit-Limit-Requests"], response["X-RateLimit-Remaining-Requests"] = map(str, left)
                response["X-RateLimit-Reset-Requests"] = "1m0s"  # all count again once the newest is a minute old
            return response
        finally:
            _left.reset(before)

    return answer
