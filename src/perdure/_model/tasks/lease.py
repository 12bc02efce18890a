"""The right to write for a task, and when it is over.

No wall clock decides. A lease is over on proof of death, or when its epoch and its holder's beats have
not changed for a whole lease on the watcher's own boottime clock. A machine that slept, or a database
that stood still, therefore causes no takeover by itself: the watcher has to have seen the silence.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from perdure._ground.ids import Process

LEASE = timedelta(seconds=5)


class Holder(Struct, frozen=True):
    """The lease of a task as stored; `worker` is None if it is free."""

    epoch: int
    worker: str | None
    beats: int = 0
    process: Process | None = None
    user: str = ""
    lease_ms: int = 0

    @property
    def is_free(self) -> bool:
        return self.worker is None


class Sighting(Struct, frozen=True):
    """A watcher's view of a lease, and since when it has looked the same."""

    epoch: int
    worker: str
    beats: int
    since: float
    looked: float  # when it was last looked at

    @staticmethod
    def of(holder: Holder, now: float, before: Sighting | None, lease: timedelta) -> Sighting:
        """One more look. Of the time since the last one at most half a lease counts: a watcher that was
        asleep itself, with the whole machine, has seen no silence, and gives the holder time to beat."""
        seen = (holder.epoch, holder.worker or "", holder.beats)
        if before is None or (before.epoch, before.worker, before.beats) != seen:
            return Sighting(*seen, since=now, looked=now)
        unseen = max(0.0, now - before.looked - lease.total_seconds() / 2)
        return Sighting(*seen, since=before.since + unseen, looked=now)

    def is_over(self, now: float, lease: timedelta) -> bool:
        return now - self.since >= lease.total_seconds()
