"""Middleware that needs none of the apps."""

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
    """Refuse addresses with NUL or a lone surrogate. No name contains them, and they cannot be stored or logged."""

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
    """Accept probes with any host name, since load balancers use IP addresses. Probes give everyone the same answer."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBES:
            request.META["HTTP_HOST"] = settings.ALLOWED_HOSTS[0].removeprefix(".").replace("*", "localhost")
        return get_response(request)

    return answer


@sync_only_middleware
def own_sockets(get_response: Handler) -> Handler:
    """Allow a page to open sockets to its own origin, and to no other port or host.

    Browsers disagree on whether ``'self'`` covers sockets, so the policy also names the origin. It cannot name an IPv6
    address.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        try:
            host = request.get_host()
        except DisallowedHost:
            return response  # an error page, which opens no socket
        if not host.startswith("["):
            response._csp_update = {  # type: ignore[attr-defined]
                "connect-src": f"{'wss' if request.is_secure() else 'ws'}://{host}"
            }
        return response

    return answer


def address_of(request: HttpRequest) -> str:
    """Return the client's address. A proxy's header counts only if the operator says that there is a proxy."""
    behind_proxy: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
    if behind_proxy:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


@receiver(bind_extra_request_metadata)
def note_address(request: HttpRequest, **_: Any) -> None:
    """Add the client's address to each log line of a request.

    django-structlog's own way takes a tenth of a POST's Python calls, and believes any header that a client sends.
    """
    bind_contextvars(ip=address_of(request))
