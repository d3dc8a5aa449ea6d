"""Address and time-outs of a model server."""

import ipaddress
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits on the silence and the length of a model call, in seconds.

    ``first_byte`` ends with the first byte of the answer's body, not of its headers: some servers send headers at once
    and then read the prompt for a minute. ``idle`` limits the pause between bytes, including keep-alive comments, and
    ``comments`` the pause between events.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0
    comments: float = 300.0
    total: float = 1800.0


DEFAULT_TIMEOUTS = Timeouts()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model server, its key and its time-outs. ``key`` is empty for servers that need none."""

    base_url: str
    key: str = field(default="", repr=False)
    timeouts: Timeouts = DEFAULT_TIMEOUTS

    @property
    def host(self) -> str:
        """Return the name by which people know the server. Every error begins with it."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or self.base_url

    def proxy(self) -> str | None:
        """Return the proxy that the environment names for this server. A server on this machine has none."""
        return None if is_loopback(self.base_url) else _proxy_to(self.base_url)


@cache
def _proxy_to(url: str) -> str | None:
    parts, proxies = urlsplit(url), getproxies()
    return None if proxy_bypass(parts.netloc) else proxies.get(parts.scheme) or proxies.get("all")


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def without_key(text: str, key: str) -> str:
    """Mask the key in a text, since servers tend to quote a key that they reject."""
    return text.replace(key, "[key]") if len(key) >= 4 else text
