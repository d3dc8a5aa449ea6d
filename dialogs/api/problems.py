"""Errors of ``/api``. They always are ``{"error": {"code", "message"}}``, after a refusal, a body that is no JSON, or a
bug."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import structlog
from asgiref.sync import iscoroutinefunction
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from dialogs.errors import UNREADABLE, RateLimited, Refusal
from dominds.web import busy_database

log = structlog.get_logger(__name__)

DAMAGED = (
    "Something that is stored of this dialog cannot be read; it has been logged. GET /api/dialogs/{0}/export gives "
    "what can be, POST /api/dialogs/{0}/clear begins a fresh round, /close ends it."
)
ARGUMENTS = {"given", "window", "body", "query", "path"}  # names of our arguments, which mean nothing to callers
CODES = {400: "invalid", 404: "not_found", 405: "method_not_allowed"}
Wrapped = Callable[..., Any]
Problem = TypeVar("Problem", bound=Exception)


def error(code: str, message: str, status: int, retry_after_seconds: int | None = None) -> HttpResponse:
    answer = JsonResponse({"error": {"code": code, "message": message}}, status=status)
    if retry_after_seconds is not None:
        answer["Retry-After"] = str(retry_after_seconds)
    return answer


def register(api: NinjaAPI) -> None:
    """Register handlers with ``api``, so that every error is answered in the API's one shape."""

    def on(kind: type[Problem], answer: Callable[[HttpRequest, Problem], HttpResponse]) -> None:
        api.add_exception_handler(kind, cast(Any, answer))  # ninja types the exception as maybe a class

    on(Refusal, lambda request, problem: refusal_response(problem))
    on(ValidationError, lambda request, problem: error("invalid", fields_of(problem.errors), 400))
    on(HttpError, lambda request, problem: _http_error(problem))
    on(Http404, lambda request, problem: unknown_address(request))
    on(RequestDataTooBig, lambda request, problem: too_big())
    for away in (*busy_database.AWAY, TimeoutError):
        on(away, unavailable)
    on(Exception, internal_error)


def refusal_response(problem: Refusal) -> HttpResponse:
    wait = problem.retry_after_seconds if isinstance(problem, RateLimited) else None
    return error(problem.code, problem.message, problem.status, wait)


def fields_of(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the wrong fields, as pydantic found them, and why they are wrong."""
    return "; ".join(f"{_place(item['loc'])}: {item['msg']}" for item in errors[:5])


def _place(parts: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in parts if part not in ARGUMENTS) or "the body"


def _http_error(problem: HttpError) -> HttpResponse:
    if problem.status_code == 400:
        return error("invalid", f"The body is not JSON: {problem.__context__ or problem}. Send one JSON object.", 400)
    return error(CODES.get(problem.status_code, "invalid"), str(problem), problem.status_code)


def too_big() -> HttpResponse:
    return error("message_too_large", "The body has more than 32 MB; a message may have 1 MB.", 413)


def unknown_address(request: HttpRequest) -> HttpResponse:
    return error("not_found", f"There is nothing at {request.path}. See /api/docs.", 404)


def unavailable(request: HttpRequest, problem: Exception) -> HttpResponse:
    """Answer that the database is unavailable.

    ``stored`` is ``unknown`` if the reply to a commit was lost. The call can then be repeated under the same id.
    """
    log.warning("api_unavailable", path=request.path, error=str(problem) or type(problem).__name__)
    if busy_database.is_known(request, problem):
        return busy_database.mark_unavailable(error("unavailable", busy_database.NOTHING, 503))
    content = {"code": "unavailable", "message": busy_database.UNKNOWN, "stored": "unknown"}
    return busy_database.mark_unavailable(JsonResponse({"error": content}, status=503))


def internal_error(request: HttpRequest, problem: Exception) -> HttpResponse:
    log.exception("api_failed", path=request.path, exc_info=problem)
    match = request.resolver_match
    if match and (dialog_id := match.kwargs.get("dialog_id")) and isinstance(problem, UNREADABLE):
        return error("damaged", DAMAGED.format(dialog_id), 500)
    return error("internal", "This call failed because of a fault in Dominds; it has been logged.", 500)


def in_json(view: Wrapped) -> Wrapped:
    """Wrap a view, so that errors which no handler of the API sees (a wrong method, a body too large) are JSON too."""
    if iscoroutinefunction(view):

        @wraps(view)
        async def later(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                return _translate(request, await view(request, *args, **kwargs))
            except (Http404, RequestDataTooBig) as problem:
                return _django_error(request, problem)

        return later

    @wraps(view)
    def now(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return _translate(request, view(request, *args, **kwargs))
        except (Http404, RequestDataTooBig) as problem:
            return _django_error(request, problem)

    return now


def _django_error(request: HttpRequest, problem: Exception) -> HttpResponse:
    return too_big() if isinstance(problem, RequestDataTooBig) else unknown_address(request)


def _translate(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    if answer.status_code != 405:
        return answer
    allowed = answer["Allow"]
    refusal = error("method_not_allowed", f"{request.method} is not offered here; {allowed} is.", 405)
    refusal["Allow"] = allowed
    return refusal
