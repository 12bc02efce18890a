"""How much of each provider's allowance was used, so that a resumed agent does not run into the limit again.

Counted by provider and key; of a key only a digest is kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from perdure._ground.clock import Clock, SystemClock
from perdure._runtime.unit_types import Place, UnitType


@dataclass
class Allowance:
    """One provider's allowance for one key: `limit` within each window, of which `used` are gone."""

    limit: int
    window_ms: int
    used: int = 0
    resets_at: int = 0


class RateLimits:
    """Counters, by provider and key."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._counts: dict[str, Allowance] = {}

    def allow(self, provider: str, key: str = "", *, limit: int, seconds: float) -> None:
        """Say what a provider allows; what was used already stays used."""
        name = _name(provider, key)
        found = self._counts.setdefault(name, Allowance(limit, int(seconds * 1000)))
        found.limit, found.window_ms = limit, int(seconds * 1000)

    def take(self, provider: str, key: str = "", *, count: int = 1) -> bool:
        """Use some of the allowance; False, and nothing used, when there is not enough left."""
        found = self._current(provider, key)
        if found is None:
            return True
        if found.used + count > found.limit:
            return False
        if not found.used:
            found.resets_at = self._clock.now_ms() + found.window_ms
        found.used += count
        return True

    def left(self, provider: str, key: str = "") -> int | None:
        """How much is left in this window; None if nothing is known of the provider."""
        found = self._current(provider, key)
        return None if found is None else found.limit - found.used

    def told(self, provider: str, key: str = "", *, left: int, resets_at_ms: int) -> None:
        """What the provider itself says (X-RateLimit-Remaining, -Reset): it knows best."""
        found = self._counts.setdefault(_name(provider, key), Allowance(left, 0))
        found.limit = max(found.limit, left)
        found.used, found.resets_at = found.limit - left, resets_at_ms

    def _current(self, provider: str, key: str) -> Allowance | None:
        found = self._counts.get(_name(provider, key))
        if found is not None and found.used and self._clock.now_ms() >= found.resets_at:
            found.used = 0
        return found


def _name(provider: str, key: str) -> str:
    return f"{provider}:{hashlib.sha256(key.encode()).hexdigest()[:12]}" if key else provider


class RateLimitsType(UnitType):
    kind = "rate_limits"

    async def capture(self, live: RateLimits, place: Place) -> Any:
        return {name: [a.limit, a.window_ms, a.used, a.resets_at] for name, a in live._counts.items()}

    async def restore(self, recipe: Any, place: Place) -> RateLimits:
        limits = RateLimits(place.given("rate_limits").get("clock"))
        limits._counts = {name: Allowance(*told) for name, told in recipe.items()}
        return limits
