"""The first to look at a request: its Host, its origin, and how often its address asks.

What is refused is decided in guard_rules.py; this is the clock and the counting.
"""

from __future__ import annotations

import math

from perdure._ground.clock import Clock
from perdure.server.access.guard_rules import ServerAddress, find_refusal
from perdure.server.access.identity import cookie_of
from perdure.server.access.rates import Rates
from perdure.server.http import HttpProblem, Incoming
from perdure.server.table import Route


class BrowserGuard:
    """Refuses what no credential can make right."""

    def __init__(self, place: ServerAddress, clock: Clock, *, rate: int, burst: int) -> None:
        self.place, self._clock = place, clock
        self._rates = Rates(rate, burst)

    def check(self, request: Incoming, route: Route) -> None:
        """
        Raises:
            HttpProblem: 421 for a foreign Host, 403 for a foreign page, 400 for headers or keys in the wrong place,
                429 for an address that asks too often without a credential.
        """
        headers = request.headers
        has_session = "authorization" not in headers and cookie_of(headers, self.place.port) is not None
        refusal = find_refusal(
            self.place,
            request.method,
            request.raw_path,
            request.raw_query,
            headers,
            request.doubled,
            has_session=has_session,
            is_peer=request.peer_uid is not None,
        )
        if refusal is not None:
            raise HttpProblem(refusal.status, refusal.code, refusal.detail, do=refusal.do)
        if route.who in ("nobody", "token", "code"):
            self._spend(request.address)

    def _spend(self, address: str) -> None:
        wait = self._rates.take(address, self._clock.boottime())
        if wait > 0:
            raise HttpProblem(
                429,
                "too_many_requests",
                "this address asks too often",
                do="wait, and ask less often",
                headers={"Retry-After": str(math.ceil(wait))},
            )
