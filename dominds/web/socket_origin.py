"""Origin check of sockets: only pages of this server may open one, by scheme, host and port.

A browser sends a host's cookies to all of its ports, and has no same-origin rule for sockets. Without this check
another program on this machine could read a person's dialogs through its own page.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

from dominds.web.startup import Application

PORTS = {"http": 80, "https": 443}
REFUSED = 4403


def same_origin_only(application: Application) -> Application:
    """Wrap an ASGI application for sockets. A handshake from another origin, or from none, is answered 403."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if is_own(scope):
            await application(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": REFUSED})

    return call


def is_own(scope: Mapping[str, Any]) -> bool:
    """Check, as Django does against CSRF, that the page's origin is that of the request or a trusted one."""
    origins = _values(scope, b"origin")
    if len(origins) != 1 or (origin := _parts(origins[0])) is None:
        return False
    if origin in map(_parts, settings.CSRF_TRUSTED_ORIGINS):
        return True
    hosts = _values(scope, b"host")
    own = _parts(f"{_scheme(scope)}://{hosts[0]}") if len(hosts) == 1 else None
    return own == origin and validate_host(own[1], settings.ALLOWED_HOSTS)


def _scheme(scope: Mapping[str, Any]) -> str:
    """Return the page's scheme. A proxy's header counts only if the operator says that there is a proxy."""
    behind_proxy: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
    if behind_proxy:
        name = behind_proxy[0].removeprefix("HTTP_").replace("_", "-").lower().encode()
        return "https" if behind_proxy[1] in _values(scope, name) else "http"
    return "https" if scope.get("scheme") in ("wss", "https") else "http"


def _values(scope: Mapping[str, Any], wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == wanted]


def _parts(origin: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None if the text is no web origin, such as ``null`` or an address with a path."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    bare = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in PORTS or not parts.hostname or not bare:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, host, PORTS[parts.scheme] if port is None else port
