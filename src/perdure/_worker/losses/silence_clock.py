"""Measure for how long a process was able to hear the beats of others. Pure.

The silence of a worker means something only while we could have heard it. When our own beats do not come back to us
from the store, because its file is locked or its database hangs, we cannot hear other workers either. Such time does
not count; time counted before stays.
"""

from __future__ import annotations


class SilenceClock:
    """A clock that advances only while our own beats reach the store."""

    def __init__(self) -> None:
        self._listened = 0.0
        self._looked: float | None = None
        self._beats: int | None = None
        self._heard_at = 0.0

    def look(self, now: float, beats: int | None, lease_seconds: float) -> float:
        """Returns the seconds listened so far, after one more look at `now`.

        `beats` counts our own beats in the store; None while it has none. Each beat lets the clock advance for up to
        half a lease; there are three beats in a lease.
        """
        before, self._looked = self._looked, now
        if before is not None and beats is not None and self._beats is not None:
            until = min(now, self._heard_at + lease_seconds / 2)
            self._listened += max(0.0, until - before)
        if beats != self._beats:
            self._beats, self._heard_at = beats, now
        return self._listened
