"""Rate limits: token buckets, by credential and by address. Pure: the caller passes the time."""

from __future__ import annotations

from collections import OrderedDict

_MOST = 20_000  # buckets; the one used longest ago is forgotten, and is full when it comes back


class Rates:
    """One bucket per name: `burst` at once, `rate` a second after that."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, and when that was

    def take(self, name: str, now: float) -> float:
        """Take one. Returns 0.0, or after how many seconds there is one again."""
        left = self._left(name, now)
        is_there = left >= 1.0
        self._buckets[name] = (left - 1.0 if is_there else left, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return 0.0 if is_there else (1.0 - left) / self._rate

    def is_empty(self, name: str, now: float) -> bool:
        return self._left(name, now) < 1.0

    def _left(self, name: str, now: float) -> float:
        left, then = self._buckets.get(name, (self._burst, now))
        return min(self._burst, left + max(0.0, now - then) * self._rate)
