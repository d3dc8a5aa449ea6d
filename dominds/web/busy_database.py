"""Answers while the database is busy or away: status 503, and a second try for requests that only read."""

import sys
import time
from sqlite3 import SQLITE_FULL

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.decorators import sync_only_middleware
from django.views.defaults import server_error

from dominds.db.outcome import OutcomeUnknown, changes_so_far
from dominds.web.middleware import Handler

log = structlog.get_logger(__name__)

RETRY_SECONDS = 5  # after which clients should ask again
AGAIN_WITHIN_SECONDS = 6.0  # a read that took longer until it failed is not tried again
READS = ("GET", "HEAD")
DISK_FULL = "53100"  # PostgreSQL's code for a full disk
AWAY = (OperationalError, InterfaceError)

NOTHING = "The database is busy or away. Nothing was changed; try again."
UNKNOWN = (
    "The database went away before it confirmed. What you sent may have been stored: look whether it is there. "
    "A message may be sent again under the same client_message_id; it is stored once."
)


def is_known(request: HttpRequest, error: BaseException) -> bool:
    """Check whether this request has certainly changed nothing, since it only reads or has committed nothing."""
    if request.method in READS:
        return True
    before = getattr(request, "changes_before", None)
    return before is not None and before == changes_so_far() and not isinstance(error, OutcomeUnknown | TimeoutError)


def is_disk_full(error: BaseException) -> bool:
    cause = error.__cause__
    return getattr(cause, "sqlstate", None) == DISK_FULL or getattr(cause, "sqlite_errorcode", None) == SQLITE_FULL


def mark_unavailable(response: HttpResponse) -> HttpResponse:
    """Set the status 503 and the header ``Retry-After``, and mark the response for ``retry_reads``."""
    response.status_code = 503
    response["Retry-After"] = str(RETRY_SECONDS)
    response.database_was_away = True  # type: ignore[attr-defined]
    return response


@sync_only_middleware
def retry_reads(get_response: Handler) -> Handler:
    """Repeat a read once if the database was away, since that may last only a moment."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        began = time.monotonic()
        request.changes_before = changes_so_far()  # type: ignore[attr-defined]
        response = get_response(request)
        was_away = getattr(response, "database_was_away", False)
        if was_away and request.method in READS and time.monotonic() - began < AGAIN_WITHIN_SECONDS:
            close_old_connections()
            response = get_response(request)
        return response

    return answer


def page(request: HttpRequest) -> HttpResponse:
    """Return the page for an error in a view or middleware. Django calls this while it handles the error."""
    error = sys.exc_info()[1]
    if error is None or not isinstance(error, AWAY):
        return server_error(request)
    log.warning("page_unavailable", path=request.path, error=str(error))
    known = {"is_known": is_known(request, error), "is_full": is_disk_full(error), "unknown": UNKNOWN}
    return mark_unavailable(HttpResponse(render_to_string("503.html", known)))
