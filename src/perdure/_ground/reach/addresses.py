"""The IP addresses that a request may reach when its destination was chosen by others.

An address is public, private or refused. Private ones (loopback, the networks of RFC 1918, unique local addresses,
shared address space) are for receivers beside this process, where an operator allows them. Everything else in the
special-purpose registries of IANA is refused for good: metadata services live there. An IPv6 address that carries an
IPv4 address is judged by both.

Pure, but for `is_own`.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_PRIVATE_4 = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_SPECIAL_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "169.254.0.0/16",  # link-local: metadata services
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # relays of 6to4
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_PRIVATE_6 = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))
_GLOBAL_6 = IPv6Network("2000::/3")  # all other unicast is special or unassigned
_SPECIAL_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)  # the upper half of an interface id


def is_allowed(address: str | Address, *, is_private_allowed: bool = False) -> bool:
    """True if a request may go to this address."""
    return why_refused(address, is_private_allowed=is_private_allowed) is None


def why_refused(address: str | Address, *, is_private_allowed: bool = False) -> str | None:
    """Why a request may not go to this address; None if it may."""
    if isinstance(address, str):
        if "%" in address:
            return "it names a zone"
        try:
            address = ip_address(address)
        except ValueError:
            return "it is not an IP address"
    if isinstance(address, IPv6Address):
        return _why_refused_6(address, is_private_allowed)
    return _why_refused_4(address, is_private_allowed)


def _why_refused_4(address: IPv4Address, is_private_allowed: bool) -> str | None:
    if any(address in network for network in _PRIVATE_4):
        return None if is_private_allowed else "it is private"
    return "it is reserved" if any(address in network for network in _SPECIAL_4) else None


def _why_refused_6(address: IPv6Address, is_private_allowed: bool) -> str | None:
    if address.scope_id is not None:
        return "it names a zone"
    if address in _PRIVATE_6[0] or address in _PRIVATE_6[1]:
        return None if is_private_allowed else "it is private"
    for inner in carried(address):
        if (why := _why_refused_4(inner, is_private_allowed)) is not None:
            return f"it carries {inner}, and {why}"
    if address.ipv4_mapped is not None or address in _NAT64:
        return None  # the same host as the IPv4 address in it
    if address not in _GLOBAL_6 or any(address in network for network in _SPECIAL_6):
        return "it is reserved"
    return None


def carried(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that this one embeds, by any of the known mappings."""
    number = int(address)
    found: list[IPv4Address | None] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    is_isatap = (number >> 32) & 0xFFFFFFFF in _ISATAP
    if is_isatap or address in _NAT64 or address in _COMPATIBLE:
        found.append(IPv4Address(number & 0xFFFFFFFF))
    if address in _NAT64_LOCAL:
        found += [IPv4Address(number & 0xFFFFFFFF), IPv4Address((number >> 48) & 0xFFFFFFFF)]
    return [one for one in found if one is not None]


def is_own(address: str) -> bool:
    """True if this machine has the address. The kernel reaches its own addresses from that same address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # sends nothing
        return bool(ip_address(probe.getsockname()[0]) == ip_address(address))
    return False
