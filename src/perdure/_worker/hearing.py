"""How long a watcher has been able to hear others. Pure.

Silence means something only to one who would have heard. A watcher whose own beats do not come back to it from the
store, because a file is kept by somebody or a database stands still, hears nobody else either: such time is not
counted, and what it has counted before stays.
"""

from __future__ import annotations


class Listening:
    """A clock that goes on while our own beats are heard."""

    def __init__(self) -> None:
        self._listened = 0.0
        self._looked: float | None = None
        self._beats: int | None = None
        self._heard_at = 0.0

    def look(self, now: float, beats: int | None, lease_seconds: float) -> float:
        """One more look; `beats` are our own as the store has them, None while it has none. The seconds listened so
        far: up to half a lease after each of our beats, of which there are three in a lease."""
        before, self._looked = self._looked, now
        if before is not None and beats is not None and self._beats is not None:
            until = min(now, self._heard_at + lease_seconds / 2)
            self._listened += max(0.0, until - before)
        if beats != self._beats:
            self._beats, self._heard_at = beats, now
        return self._listened
