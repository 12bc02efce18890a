"""Addresses of the web as other people write them: read strictly, or refused.

Programs disagree about odd spellings (`0x7f.1`, `https://good\\@bad/`, fullwidth digits), and each disagreement is a
way around a check. So only one spelling is taken: visible ASCII, no user, no fragment, a host that is either a name
of letters, digits and hyphens or an IP address in its usual form. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

from perdure.errors import AddressRefused

_MOST = 2048  # characters
_SHAPE = re.compile(r"(https?)://([^/?#]+)([/?][^#]*)?", re.IGNORECASE)
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ODD = set('<>"{}|\\^`')
# Names that mean something else on every machine or network.
_LOCAL = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa", "onion", "arpa")
_MIXED = frozenset({"HIRAGANA", "KATAKANA", "CJK"})  # scripts that are written together
_PORTS = {"http": 80, "https": 443}


class Rules(Struct, frozen=True):
    """The rules of an operator: the allowed ports, and private receivers (with these, a loopback receiver may use
    http)."""

    ports: tuple[int, ...] = (443,)
    is_private_allowed: bool = False


PUBLIC = Rules()


class WebAddress(Struct, frozen=True):
    """An address in its parts. `host` is in lower case and without brackets."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @property
    def is_literal(self) -> bool:
        """True if the host is an IP address rather than a name."""
        return ":" in self.host or self.host.rpartition(".")[2].isdigit()

    @property
    def place(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_address(text: str, rules: Rules = PUBLIC) -> WebAddress:
    """The parts of an address.

    Raises:
        AddressRefused: it is not in the one accepted spelling, or the rules do not allow it.
    """
    if not 0 < len(text) <= _MOST:
        raise AddressRefused(text[:80], f"it has to be text of 1 to {_MOST} characters")
    if any(not "!" <= char <= "~" or char in _ODD for char in text):
        raise AddressRefused(text, "it holds characters that an address has to escape", do="write them as %XX")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise AddressRefused(text, "it has to begin with https:// and may have no fragment")
    place = _PLACE.fullmatch(shape[2])
    if place is None:
        raise AddressRefused(text, "it has to name a host and nothing else: no user, no password, no odd spelling")
    scheme, host = shape[1].lower(), _host(text, place[1].lower(), rules)
    port = int(place[2]) if place[2] else _PORTS[scheme]
    _check_scheme(text, scheme, rules)
    if port not in rules.ports and not (rules.is_private_allowed and 0 < port < 65536):
        ports = ", ".join(map(str, rules.ports))
        raise AddressRefused(text, f"port {port} is not allowed", do=f"use one of {ports}; `hook_ports` allows others")
    target = shape[3] or "/"
    return WebAddress(scheme, host, port, target if target.startswith("/") else f"/{target}")


def _check_scheme(text: str, scheme: str, rules: Rules) -> None:
    if scheme == "http" and not rules.is_private_allowed:
        raise AddressRefused(text, "it is not https")


def _host(text: str, host: str, rules: Rules) -> str:
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except ValueError:
            raise AddressRefused(text, "its host is not an IPv6 address") from None
    labels = host.removesuffix(".").split(".")
    if labels[-1].isdigit() or re.fullmatch(r"0x[0-9a-f]*", labels[-1]):  # an IPv4 address, says every resolver
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise AddressRefused(text, "its host is an odd spelling of an IPv4 address") from None
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise AddressRefused(text, "its host is not a name")
    for label in labels:
        _check_label(text, label)
    if not rules.is_private_allowed:
        bare = ".".join(labels)
        if len(labels) == 1 or any(bare == name or bare.endswith(f".{name}") for name in _LOCAL):
            raise AddressRefused(text, "its host is a name of the local network")
    return ".".join(labels)


def _check_label(text: str, label: str) -> None:
    """Refuse an encoded label that is not the encoding of anything, or that mixes alphabets to look like another."""
    if label[2:4] != "--":
        return
    try:
        shown = label[4:].encode().decode("punycode") if label.startswith("xn--") else ""
    except (UnicodeError, OverflowError):
        shown = ""
    is_sound = (
        bool(shown)
        and not shown.isascii()
        and all(char == "-" or unicodedata.category(char)[0] in "LMN" for char in shown)
        and unicodedata.normalize("NFKC", shown).lower() == shown
        and shown.encode("punycode").decode() == label[4:]
    )
    scripts = {unicodedata.name(char, "?").split()[0] for char in shown if char.isalpha()}
    if not is_sound or (len(scripts) > 1 and not scripts <= _MIXED):
        raise AddressRefused(text, f"{label!r} in its host is not the sound encoding of a name")
