"""Requests to addresses that a person typed into a page. Those in files and the environment are the operator's own.

A name is looked up once and the connection goes to what was found, so that a second look-up cannot lead elsewhere.
There are no redirects, no proxies of the environment, and no way to this machine or its network unless that is allowed.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
SCHEMES = {"http": 80, "https": 443}
SHARED = ipaddress.ip_network("100.64.0.0/10")  # carrier-grade NAT: neither private nor global to the standard library
MOST_ADDRESSES = 4  # of a name that are tried
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # NAT64: an IPv4 address in the last four bytes


class Refused(ValueError):
    """The address may not be called; says why, for the person who typed it."""


def check(url: str, *, allow_private: bool, allow_loopback: bool = False) -> tuple[list[Address], int]:
    """Where a request to ``url`` would go: each of the name's addresses, and the port. Raises ``Refused``."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused(f"{url!r} is no web address: {error}.") from error
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise Refused("Give a whole web address that begins with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise Refused("Leave name and password out of the address: it is shown and logged.")
    port = SCHEMES[parts.scheme] if port is None else port
    try:
        result = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Refused(f"{parts.hostname!r} is not known: {error}.") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in result]
    for address in addresses:
        (_check_server if allow_loopback else _check_address)(address, allow_private=allow_private)
    return addresses, port


# Model servers are called again and again by other clients: host names that were typed,
# and whether private addresses are allowed.
_typed: dict[str, bool] = {}


def guard(url: str, *, allow_private: bool) -> None:
    """From now on ``check_found`` holds the name in this typed address to the rules, wherever it may lead by then."""
    _typed[(urlsplit(url).hostname or "").lower()] = allow_private


def check_found(host: str, addresses: Iterable[str]) -> None:
    """What a look-up by another client found for a name. Raises ``Refused``;
    names that nobody typed may lead anywhere."""
    allow_private = _typed.get(host.lower())
    if allow_private is not None:
        for address in addresses:
            _check_server(ipaddress.ip_address(address.partition("%")[0]), allow_private=allow_private)


def check_typed(url: str) -> None:
    """The same of an address, right before it is called. Raises ``Refused``."""
    allow_private = _typed.get((urlsplit(url).hostname or "").lower())
    if allow_private is not None:
        check(url, allow_private=allow_private, allow_loopback=True)


def _check_server(address: Address, *, allow_private: bool) -> None:
    """A model server may be on this machine."""
    _check_address(address, allow_private=allow_private or _unwrapped(address).is_loopback)


def _check_address(address: Address, *, allow_private: bool) -> None:
    real = _unwrapped(address)
    if real.is_link_local or real.is_multicast or real.is_unspecified or (real.is_reserved and not real.is_loopback):
        raise Refused(f"{address} is an address for special uses, among them the secrets of cloud machines.")
    if not allow_private and (not real.is_global or (real.version == 4 and real in SHARED)):
        raise Refused(
            f"{address} lies on this machine or in its own network. DOMINDS_PRIVATE_WEBHOOKS=1 allows such addresses,"
            " and DOMINDS_PRIVATE_IMAGES=1 those of images."
        )


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float, allow_private: bool) -> int:
    """Send a POST and return the status. Raises ``Refused``, ``OSError`` or ``http.client.HTTPException``.
    ``timeout_seconds`` holds for each wait, and for the answer as a whole."""
    with (
        _connection(url, timeout_seconds, allow_private=allow_private) as connection,
        _cut_after(timeout_seconds, connection.sock),
    ):
        return _answer(connection, "POST", url, headers, body).status


def get(
    url: str,
    headers: Mapping[str, str],
    *,
    timeout_seconds: float,
    most_bytes: int,
    allow_private: bool,
    allow_loopback: bool = True,
) -> tuple[int, bytes]:
    """The status and the body, of which no more than ``most_bytes`` are read; a model server may be on this machine.
    ``timeout_seconds`` holds for each wait, and for the body as a whole. Raises as ``post`` does."""
    with _connection(url, timeout_seconds, allow_private=allow_private, allow_loopback=allow_loopback) as connection:
        answer = _answer(connection, "GET", url, headers)
        ends_at, body = time.monotonic() + timeout_seconds, b""
        while len(body) < most_bytes and (piece := answer.read1(most_bytes - len(body))):
            body += piece
            if time.monotonic() > ends_at:
                raise TimeoutError("timed out")
        return answer.status, body


def _answer(
    connection: http.client.HTTPConnection, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
) -> http.client.HTTPResponse:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request(method, target, body, {**headers, "Host": parts.netloc, "Connection": "close"})
    return connection.getresponse()


@contextmanager
def _connection(
    url: str, timeout_seconds: float, *, allow_private: bool, allow_loopback: bool = False
) -> Iterator[http.client.HTTPConnection]:
    """To the first of the name's addresses that accepts one."""
    addresses, port = check(url, allow_private=allow_private, allow_loopback=allow_loopback)
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), port, timeout=timeout_seconds)
    connection.sock = _socket(addresses, port, timeout_seconds)
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(connection.sock, server_hostname=parts.hostname)
        yield connection
    finally:
        connection.close()


@contextmanager
def _cut_after(seconds: float, connected: socket.socket) -> Iterator[None]:
    """End the connection then, whatever still drips from it: whoever reads finds its end."""

    def cut() -> None:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _socket(addresses: list[Address], port: int, timeout_seconds: float) -> socket.socket:
    *others, last = list(dict.fromkeys(map(str, addresses)))[:MOST_ADDRESSES]
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, port), timeout_seconds)
    return socket.create_connection((last, port), timeout_seconds)
