"""Headers that OpenAI's clients read in every answer: the request's id, as in the log, and the rest of a rate limit."""

from contextvars import ContextVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware
from structlog.contextvars import get_contextvars

from dominds.web.middleware import Handler

_left: ContextVar[tuple[int, int] | None] = ContextVar("left_of_limit", default=None)


def note_limit(per_minute: int, used: int) -> None:
    """Note a rate limit for the answer's headers. ``used`` counts the requests of the last minute, with this one."""
    _left.set((per_minute, max(0, per_minute - used)))


@sync_only_middleware
def with_headers(get_response: Handler) -> Handler:
    """Add the headers. This middleware must run after the one that gives requests their ids."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        before = _left.set(None)  # a thread's earlier request may have left its limit here
        try:
            response = get_response(request)
            if request_id := get_contextvars().get("request_id"):
                response["X-Request-Id"] = str(request_id)
            if left := _left.get():
                response["X-RateLimit-Limit-Requests"], response["X-RateLimit-Remaining-Requests"] = map(str, left)
                # The limit is whole again once the newest request is a minute old.
                response["X-RateLimit-Reset-Requests"] = "1m0s"
            return response
        finally:
            _left.reset(before)

    return answer
