"""Refuse requests that no credential can make acceptable, by their own lines. Pure: no clock, no store, no socket.

A browser sends our cookie with whatever page it shows, and sends requests to 127.0.0.1 for pages of strangers. So a
request has to name a Host that is ours (a stranger's name that resolves to us is refused), and a request that changes
something has to come from a page of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from perdure.errors import InvalidInput

Network: TypeAlias = IPv4Network | IPv6Network

# Headers that mean something different to two readers when they are sent twice.
_ONCE = frozenset(
    {
        "host", "authorization", "cookie", "origin", "content-type", "content-length", "transfer-encoding",
        "content-encoding", "idempotency-key", "if-match", "perdure-client", "perdure-namespace", "perdure-fence",
        "perdure-holder", "perdure-input-id", "sec-fetch-site", "last-event-id", "range",
    }
)  # fmt: skip
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?\Z")
_KEY_NAMES = re.compile(rb"(?:^|[&;])(?:key|api_?key|access_token|authorization)=|=prd_", re.IGNORECASE)
SAFE = ("GET", "HEAD")


class RequestRefusal(NamedTuple):
    """Why a request is not looked at further."""

    status: int
    code: str
    detail: str
    do: str = ""


class ServerAddress(Struct, frozen=True):
    """The address at which a server is reached."""

    host: str  # that it is bound to
    port: int
    origins: tuple[str, ...] = ()  # as browsers see it behind a proxy
    proxies: tuple[Network, ...] = ()  # whose X-Forwarded-For is believed

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def origin_of(self, host: str) -> str | None:
        """The origin of our pages under this Host; None when it is not ours."""
        host = host.strip().lower()
        for origin in self.origins:
            if host == urlsplit(origin).netloc:
                return origin
        found = _HOST.match(host)
        if found is None or found["port"] not in (None, str(self.port)):
            return None
        name = found["name"]
        if name in _LOOPBACK_NAMES and (self.is_loopback or not self.origins):
            return f"http://{host}"
        # Only a name can be made to resolve to us by a stranger: an address is where the connection went.
        if not self.is_loopback and not self.origins and _is_address(name):
            return f"http://{host}"
        return None


def find_refusal(
    place: ServerAddress, method: str, raw_path: bytes, raw_query: bytes, headers: Mapping[str, str],
    doubled: frozenset[str], *, has_session: bool, is_peer: bool,
) -> RequestRefusal | None:  # fmt: skip
    """Why this request is refused; None when it may go on.

    `has_session`: it carries a session's cookie that would count. `is_peer`: it came through the Unix socket.
    """
    own = place.origin_of(headers.get("host", ""))
    if own is None and not is_peer:
        return RequestRefusal(
            421, "wrong_host", "this server is not known by that name", "use the address it has printed"
        )
    if twice := sorted(doubled & _ONCE):
        return RequestRefusal(400, "bad_request", f"the header {twice[0]} is sent twice", "send it once")
    if _KEY_NAMES.search(raw_query):
        do = "send `Authorization: Bearer prd_…`; others may have read the key in the address: rotate it"
        return RequestRefusal(400, "key_in_url", "a key does not belong into an address", do)
    is_api = raw_path in (b"/v1", b"/mcp") or raw_path.startswith(b"/v1/")
    if is_api and headers.get("sec-fetch-site", "").lower() in ("cross-site", "same-site"):
        return RequestRefusal(403, "cross_site", "a page of another site has sent this request")
    if method in SAFE or not is_api:
        return None
    return _refuse_foreign_write(own, headers, has_session=has_session)


def _refuse_foreign_write(own: str | None, headers: Mapping[str, str], *, has_session: bool) -> RequestRefusal | None:
    origin = headers.get("origin")
    if origin is not None and origin.lower() != own:
        return RequestRefusal(403, "cross_site", "a page of another origin has sent this request")
    if not has_session:
        return None
    if origin is None and headers.get("sec-fetch-site", "").lower() != "same-origin":
        return RequestRefusal(403, "cross_site", "a session may change something only from a page of this server")
    if not headers.get("perdure-client", "").strip():
        return RequestRefusal(403, "no_client", "a session may change something only with the header Perdure-Client")
    return None


def client_address(peer: str, forwarded_for: str | None, proxies: Sequence[Network]) -> str:
    """The origin of a request: the nearest address that is not a trusted proxy's."""
    if not forwarded_for or not is_in(peer, proxies):
        return peer
    address = peer
    for told in reversed([part.strip() for part in forwarded_for.split(",")]):
        if not _is_address(told):
            return address
        address = told
        if not is_in(told, proxies):
            return address
    return address


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_origin(text: str) -> str:
    """An origin as browsers write it.

    Raises:
        InvalidInput: it is not one.
    """
    parts = urlsplit(text.strip().lower())
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    if parts.scheme not in ("https", "http") or not _HOST.match(parts.netloc) or not is_bare:
        raise InvalidInput(f"{text!r} is not an origin", do="write https://perdure.example, without a path")
    default = {"https": ":443", "http": ":80"}[parts.scheme]
    return f"{parts.scheme}://{parts.netloc.removesuffix(default)}"


def read_network(text: str) -> Network:
    """
    Raises:
        InvalidInput: it is neither an address nor a network.
    """
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a network", do="write 10.0.0.0/8 or 192.0.2.7") from None


def is_in(address: str, networks: Sequence[Network]) -> bool:
    """True if an address belongs to one of these networks."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in networks)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
