"""Requests to addresses that a person typed into a page. Addresses in files and the environment are trusted.

A name is looked up once, and the connection goes to the checked result, so that a second look-up cannot lead elsewhere.
Redirects and the environment's proxies are not followed. Addresses on this machine or in its network have to be
allowed.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from dominds import waits
from dominds.address_ranges import Address, Range, range_of
from dominds.unreachable import plain_reason

SCHEMES = {"http": 80, "https": 443}
MOST_ADDRESSES = 4  # addresses of one name that are tried
LOOKUP_SECONDS = 10.0


class Refused(ValueError):
    """Raised for an address that must not be called. The message is for the person who typed it."""


def check(
    url: str, *, allow_private: bool, allow_loopback: bool = False, timeout_seconds: float = LOOKUP_SECONDS
) -> tuple[list[Address], int]:
    """Return the addresses that a request to ``url`` may go to, and the port. Raises ``Refused``."""
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
        entries = _looked_up(parts.hostname, port, timeout_seconds)
    except TimeoutError as error:
        raise Refused(f"{parts.hostname!r} was not looked up within {timeout_seconds:g} s.") from error
    except (OSError, UnicodeError) as error:
        raise Refused(f"{parts.hostname!r} is not known: {plain_reason(str(error))}.") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries]
    for address in addresses:
        (_check_server if allow_loopback else _check_address)(address, allow_private=allow_private)
    return addresses, port


# The host names of model servers that were typed, and whether private addresses are allowed for each. Such servers are
# called by other HTTP clients, which check by this table.
_typed: dict[str, bool] = {}


def guard(url: str, *, allow_private: bool) -> None:
    """Make ``check_found`` and ``check_typed`` apply the rules to the host name of this typed address."""
    _typed[(urlsplit(url).hostname or "").lower()] = allow_private


def check_found(host: str, addresses: Iterable[str]) -> None:
    """Check the addresses that another client found for a name. Names that were not typed pass. Raises ``Refused``."""
    allow_private = _typed.get(host.lower())
    if allow_private is not None:
        for address in addresses:
            _check_server(ipaddress.ip_address(address.partition("%")[0]), allow_private=allow_private)


def check_typed(url: str) -> None:
    """Check an address right before it is called. Names that were not typed pass. Raises ``Refused``."""
    allow_private = _typed.get((urlsplit(url).hostname or "").lower())
    if allow_private is not None:
        check(url, allow_private=allow_private, allow_loopback=True)


def _looked_up(host: str, port: int, seconds: float) -> Any:
    """Look up the addresses of a name in a separate thread, since the resolver has no time limit."""
    waits.begin(f"for the name {host}")
    answer: Future[Any] = Future()

    def look_up() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001  the waiting thread raises it
            answer.set_exception(error)

    threading.Thread(target=look_up, name="name", daemon=True).start()
    return answer.result(seconds)


def _check_server(address: Address, *, allow_private: bool) -> None:
    """Check the address of a model server, which may be on this machine."""
    _check_address(address, allow_private=allow_private or range_of(address) is Range.LOOPBACK)


def _check_address(address: Address, *, allow_private: bool) -> None:
    found = range_of(address)
    if found is Range.SPECIAL:
        raise Refused(f"{address} is an address for special uses, among them the secrets of cloud machines.")
    if found is not Range.PUBLIC and not allow_private:
        raise Refused(
            f"{address} lies on this machine or in its own network. DOMINDS_PRIVATE_WEBHOOKS=1 allows such addresses,"
            " and DOMINDS_PRIVATE_IMAGES=1 those of images."
        )


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float, allow_private: bool) -> int:
    """Send a POST and return the status. Raises ``Refused``, ``OSError`` or ``http.client.HTTPException``.

    ``timeout_seconds`` bounds the whole call, from the look-up of the name to the end of the headers.
    """
    with _connection(url, timeout_seconds, allow_private=allow_private) as connection:
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
    """Send a GET and return the status and at most ``most_bytes`` of the body. Raises the same errors as ``post``.

    ``timeout_seconds`` bounds the whole call. ``allow_loopback`` allows this machine, where model servers may run.
    """
    with _connection(url, timeout_seconds, allow_private=allow_private, allow_loopback=allow_loopback) as connection:
        answer, body = _answer(connection, "GET", url, headers), b""
        while len(body) < most_bytes and (piece := answer.read1(most_bytes - len(body))):
            body += piece
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
    """Connect to the first address of the host that accepts a connection."""
    ends_at = time.monotonic() + timeout_seconds
    addresses, port = check(
        url, allow_private=allow_private, allow_loopback=allow_loopback, timeout_seconds=timeout_seconds
    )
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), port, timeout=timeout_seconds)
    connection.sock = _socket(addresses, port, ends_at)
    try:
        with waits.within(ends_at - time.monotonic(), connection.sock):
            if parts.scheme == "https":
                context = ssl.create_default_context()
                connection.sock = context.wrap_socket(connection.sock, server_hostname=parts.hostname)
            yield connection
    finally:
        connection.close()


def _socket(addresses: list[Address], port: int, ends_at: float) -> socket.socket:
    *others, last = list(dict.fromkeys(map(str, addresses)))[:MOST_ADDRESSES]
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, port), _seconds_left(ends_at))
    return socket.create_connection((last, port), _seconds_left(ends_at))


def _seconds_left(ends_at: float) -> float:
    """Return the seconds until ``ends_at``. Raises ``TimeoutError`` if there are none."""
    if (seconds := ends_at - time.monotonic()) <= 0:
        raise TimeoutError("timed out")
    return seconds
