"""Access control: the guard checks a request's own lines, and the identities check its credential.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.access.guard import BrowserGuard
from perdure.server.access.guard_rules import (
    Network,
    ServerAddress,
    client_address,
    is_in,
    is_loopback,
    read_network,
    read_origin,
)
from perdure.server.access.identity import Identities, cookie_name, cookie_of
from perdure.server.access.rates import Rates
__all__ = [
    "BrowserGuard",
    "Network",
    "ServerAddress",
    "client_address",
    "is_in",
    "is_loopback",
    "read_network",
    "read_origin",
    "Identities",
    "cookie_name",
    "cookie_of",
    "Rates",
]
