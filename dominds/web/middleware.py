"""Middleware of the lowest layer."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import sync_only_middleware
from django_structlog.signals import bind_extra_request_metadata
from structlog.contextvars import bind_contextvars

Handler = Callable[[HttpRequest], HttpResponseBase]
PROBES = frozenset({"/livez", "/readyz"})


@sync_only_middleware
def readable_only(get_response: Handler) -> Handler:
    """Refuse addresses with NUL or half of a surrogate pair, which no name contains, and nothing stores or logs."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        try:
            request.path.encode()
        except UnicodeEncodeError:
            return HttpResponse("The address holds half of a character.\n", status=400, content_type="text/plain")
        if "\x00" in request.path:
            return HttpResponse("The address holds a NUL character.\n", status=400, content_type="text/plain")
        return get_response(request)

    return answer


@sync_only_middleware
def asked_by_address(get_response: Handler) -> Handler:
    """Let probes in under any host name, since a load balancer asks by address. They tell everyone the same."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBES:
            request.META["HTTP_HOST"] = settings.ALLOWED_HOSTS[0].removeprefix(".").replace("*", "localhost")
        return get_response(request)

    return answer


@sync_only_middleware
def own_sockets(get_response: Handler) -> Handler:
    """Let a page open sockets to its very origin, and to no other port or host.

    Browsers disagree on whether ``'self'`` covers sockets, so the origin is named too. A policy cannot name an IPv6
    address.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        try:
            host = request.get_host()
        except DisallowedHost:
            return response  # an error page, which opens none
        if not host.startswith("["):
            response._csp_update = {  # type: ignore[attr-defined]
                "connect-src": f"{'wss' if request.is_secure() else 'ws'}://{host}"
            }
        return response

    return answer


def address_of(request: HttpRequest) -> str:
    """Return the client's address; a proxy's header counts only where the operator says that there is a proxy."""
    behind_proxy: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
    if behind_proxy:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


@receiver(bind_extra_request_metadata)
def note_address(request: HttpRequest, **_: Any) -> None:
    """Put the client's address on each line of the log.

    The way of django-structlog takes a tenth of a POST's Python calls, and believes any header that a client writes.
    """
    bind_contextvars(ip=address_of(request))
