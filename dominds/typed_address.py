"""Web addresses as people type them."""

import ipaddress
from urllib.parse import urlsplit

from dominds.address_ranges import Range, range_of

OWN_NETWORKS = (".local", ".lan", ".home", ".internal", ".localhost")  # no public server has a name with such an ending


def with_scheme(address: str) -> str:
    """Complete an address that was typed without its scheme: ``http`` for this machine or a private network, ``https``
    for a public server.

    A text is returned unchanged if it is no address, or if the scheme is not certain: a single word, or a public server
    with a port, to which ``http`` would send a key in the clear.
    """
    address = address.strip()
    if "://" in address:
        return address
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return address
    if _is_own(host) or (port is not None and "." not in host):
        return f"http://{address}"
    return f"https://{address}" if "." in host and port in (None, 443) else address


def _is_own(host: str) -> bool:
    try:
        return range_of(ipaddress.ip_address(host)) is not Range.PUBLIC
    except ValueError:
        return host == "localhost" or host.lower().endswith(OWN_NETWORKS)
