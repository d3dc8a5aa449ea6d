"""Ranges of IP addresses: public, loopback, private and special.

The table is taken from the registries of special-purpose addresses (RFC 6890 and its updates, as of November 2026),
with addresses at which clouds reveal secrets. The standard library's table is not used, since it changes from one
Python to the next.
"""

import ipaddress
from enum import Enum

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Range(Enum):
    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"  # addresses inside somebody's network
    SPECIAL = "special"  # no server, or one with a cloud's secrets


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


LOOPBACK = _networks("127.0.0.0/8", "::1/128")
CLOUDS = _networks(
    "100.100.100.200/32",  # Alibaba's metadata
    "168.63.129.16/32",  # Azure's wire server
    "fd00:ec2::/32",  # Amazon's metadata
    "fd20:ce::/64",  # Google's metadata
)
PRIVATE = _networks(
    "10.0.0.0/8",
    "100.64.0.0/10",  # carrier-grade NAT
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarks; some VPNs answer here
    "fc00::/7",
)
PUBLIC = _networks("0.0.0.0/0", "2000::/3")  # except for the special ones below
SPECIAL = _networks(
    "0.0.0.0/8",
    "169.254.0.0/16",  # link-local: metadata of most clouds
    "192.0.0.0/24",  # protocol assignments: Oracle's metadata
    "192.0.2.0/24",  # documentation
    "192.31.196.0/24",  # AS112
    "192.52.193.0/24",  # automatic multicast tunneling
    "192.88.99.0/24",  # relays of 6to4
    "192.175.48.0/24",  # AS112
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/3",  # multicast, reserved, broadcast
    "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
    "2001:db8::/32",  # documentation
    "2620:4f:8000::/48",  # AS112
    "3ffe::/16",  # the 6bone, given back
    "3fff::/20",  # documentation
)
MAPPED = ipaddress.ip_network("::ffff:0:0/96")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
SIX_TO_FOUR = ipaddress.ip_network("2002::/16")


def range_of(address: Address) -> Range:
    """Return the range that packets to this address reach: that of an embedded IPv4 address, if there is one."""
    real = ipv4_within(address)
    if _lies_in(real, LOOPBACK):
        return Range.LOOPBACK
    if _lies_in(real, CLOUDS):
        return Range.SPECIAL
    if _lies_in(real, PRIVATE):
        return Range.PRIVATE
    return Range.PUBLIC if _lies_in(real, PUBLIC) and not _lies_in(real, SPECIAL) else Range.SPECIAL


def ipv4_within(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds, or else the address itself."""
    number = int(address)
    if address in MAPPED or address in NAT64:
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if address in SIX_TO_FOUR:
        return ipaddress.IPv4Address(number >> 80 & 0xFFFFFFFF)
    return address


def _lies_in(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)
