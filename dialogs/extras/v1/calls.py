"""What all calls of ``/v1`` share: the key that pays, the methods they take, and errors in each protocol's shape."""

import re
from collections.abc import Callable, Coroutine
from functools import wraps
from operator import attrgetter
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from dialogs.accounts import api_keys
from dialogs.api.auth import ScopeRefused, bearer_of
from dialogs.errors import Refusal
from dialogs.extras.v1 import errors
from dialogs.extras.v1.composing import Restarted
from dialogs.extras.v1.errors import ApiError, of_refusal
from dialogs.extras.v1.messages.answer import error_body as message_error
from dialogs.models import ApiKey, Dialog
from dialogs.store.charging import charge
from dominds.db.outcome import OutcomeUnknown

log = structlog.get_logger(__name__)

HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}")
RESTARTED = ApiError(
    500, "answer_restarted", "The model failed in the middle and its next attempt said something else. Ask again."
)

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
ErrorBody = Callable[[ApiError], dict[str, Any]]


def call(*methods: str, error_body: ErrorBody | None = None) -> Callable[[View], View]:
    """Make a view of the function that answers a call by these methods.

    Whoever finds an error, it is told in the shape of the caller's protocol: that of ``error_body``, or else
    Anthropic's for clients that name a version of it, and OpenAI's for all others. Pages of other origins may call,
    too, since a key counts and never a session.
    """
    offered = (*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS")

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            response: HttpResponseBase
            try:
                if request.method == "OPTIONS":
                    response = HttpResponse(status=204)
                else:
                    _check(request, offered)
                    response = await view(request, **kwargs)
            except Exception as error:  # noqa: BLE001  a program is answered in JSON, and a bug of ours is logged there
                problem = problem_of(request, error)
                body = error_body or (message_error if "anthropic-version" in request.headers else attrgetter("body"))
                response = problem.response(body(problem))
            if request_id := errors.request_id():
                response["request-id"] = request_id  # as Anthropic's clients read it; X-Request-Id is OpenAI's
            return _readable_by_pages(request, response, offered)

        return answer

    return decorate


def _check(request: HttpRequest, offered: tuple[str, ...]) -> None:
    if request.method not in offered:
        raise ApiError(405, "method_not_allowed", f"Use {' or '.join(offered[:-1])}.")
    if (encoding := request.headers.get("Content-Encoding", "identity")).lower() != "identity":
        raise ApiError(415, "unsupported_encoding", f"The body is compressed ({encoding[:40]!r}): send it as it is.")


def _readable_by_pages(request: HttpRequest, response: HttpResponseBase, offered: tuple[str, ...]) -> HttpResponseBase:
    """Add the headers that browsers want before, and in answers to, calls to another origin."""
    if response.status_code == 405 or request.method == "OPTIONS":
        response["Allow"] = ", ".join(offered)
    if "Origin" in request.headers:
        response["Access-Control-Allow-Origin"] = "*"
        response["Access-Control-Expose-Headers"] = "*"
        if request.method == "OPTIONS":
            response["Access-Control-Allow-Methods"] = ", ".join(offered)
            # An asterisk would not cover Authorization.
            asked = request.headers.get("Access-Control-Request-Headers", "")
            response["Access-Control-Allow-Headers"] = asked if HEADER_NAMES.fullmatch(asked) else "Authorization"
            response["Access-Control-Max-Age"] = "600"
    return response


UNCONFIRMED = (
    "The database went away before it confirmed. What you sent may have been stored, and be answered: look into the "
    "dialog before you send it again, which may store it twice."
)


def problem_of(request: HttpRequest, error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case Refusal():
            return of_refusal(error)
        case RequestDataTooBig():
            return ApiError(413, "request_too_large", "The body has more than 32 MB.")
        case Restarted():
            return RESTARTED
        case DatabaseError() | TimeoutError() | Dialog.DoesNotExist():  # the dialog has just expired
            log.warning("v1_unavailable", path=request.path, error=str(error) or type(error).__name__)
            message = UNCONFIRMED if isinstance(error, OutcomeUnknown) else "The database is busy or away. Try again."
            return ApiError(503, "unavailable", message, retry_after_seconds=5)
    log.error("v1_failed", path=request.path, exc_info=error)
    return ApiError(500, "internal", "This call failed because of a fault of ours; it has been logged.")


def key_in(request: HttpRequest) -> str:
    """Return the key as OpenAI's, Anthropic's or Google's clients send it."""
    named = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key", "")
    return bearer_of(request.headers.get("Authorization", "")) or named


def key_of(request: HttpRequest) -> ApiKey:
    given = key_in(request)
    key = api_keys.key_of(given)
    if key is None:
        raise ApiError(401, "invalid_api_key", api_keys.refusal_of(given))
    if key.scope == ApiKey.Scope.READ:
        raise of_refusal(ScopeRefused(key))
    charge(key)
    return key


def give_back_connection() -> None:
    if not connection.in_atomic_block:
        connection.close()  # to the pool: an answer takes minutes
