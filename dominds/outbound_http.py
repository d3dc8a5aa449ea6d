"""Requests to addresses that a person typed into a page. Those in files and the environment are the operator's own.

A name is looked up once and the connection goes to what was found, so that a second look-up cannot lead elsewhere. There
are no redirects, no proxies of the environment, and no way to this machine or its network unless that is allowed.
"""

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
SCHEMES = {"http": 80, "https": 443}
SHARED = ipaddress.ip_network("100.64.0.0/10")  # carrier-grade NAT: neither private nor global to the standard library
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # NAT64: an IPv4 address in the last four bytes


class Refused(ValueError):
    """The address may not be called; says why, for the person who typed it."""


def check(url: str, *, allow_private: bool) -> tuple[Address, int]:
    """Where a request to ``url`` would go. Raises ``Refused``."""
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
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Refused(f"{parts.hostname!r} is not known: {error}.") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    for address in addresses:
        _check_address(address, allow_private=allow_private)
    return addresses[0], port


def _check_address(address: Address, *, allow_private: bool) -> None:
    real = _unwrapped(address)
    if real.is_link_local or real.is_multicast or real.is_unspecified or (real.is_reserved and not real.is_loopback):
        raise Refused(f"{address} is an address for special uses, among them the secrets of cloud machines.")
    if not allow_private and (not real.is_global or (real.version == 4 and real in SHARED)):
        raise Refused(
            f"{address} lies on this machine or in its own network. DOMINDS_PRIVATE_WEBHOOKS=1 allows such addresses."
        )


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float, allow_private: bool) -> int:
    """Send a POST and return the status. Raises ``Refused``, ``OSError`` or ``http.client.HTTPException``."""
    address, port = check(url, allow_private=allow_private)
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = http.client.HTTPConnection(str(parts.hostname), port, timeout=timeout_seconds)
    connection.sock = socket.create_connection((str(address), port), timeout_seconds)
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(connection.sock, server_hostname=parts.hostname)
        connection.request("POST", target, body, {**headers, "Host": parts.netloc, "Connection": "close"})
        return connection.getresponse().status
    finally:
        connection.close()
