"""Ask the workers of a store to leave, and see that they do."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from perdure._ground.bridge import Nap
from perdure._ground.ids import is_proven_dead
from perdure._store import Store, Write
from perdure._worker.reaper import Other
from perdure._worker.registration import DRAIN
from perdure.errors import TimedOut

_LOOK_SECONDS = 0.02


async def drain_workers(store: Store, *, pids: Collection[int], host: str | None, timeout: timedelta) -> list[Other]:
    """The workers that were asked and hold nothing any more.

    Raises:
        TimedOut: some still hold tasks; they go on trying.
    """
    asked = [other for other in await _workers(store) if _is_meant(other, pids, host)]
    for other in asked:
        params = {"worker": other.id, "wish": DRAIN}
        await Write(store.committer, "ask_worker", params, key=f"worker {other.id}")
    end = store.clock.boottime() + timeout.total_seconds()
    while busy := await _busy(store, {other.id for other in asked}):
        if store.clock.boottime() >= end:
            names = ", ".join(f"pid {other.process.pid} on {other.process.host}" for other in busy)
            raise TimedOut(f"{names} still at work after {timeout}", kept="they were asked and go on leaving")
        await Nap(_LOOK_SECONDS)
    return asked


async def _workers(store: Store) -> list[Other]:
    """The processes that are here to work, as far as they are not known to be dead."""
    rows = [row for row in await store.query("read_workers") if row[11]]
    others = [Other.of(row) for row in rows]
    return [other for other in others if not is_proven_dead(other.process, same_machine=store.engine.is_local)]


def _is_meant(other: Other, pids: Collection[int], host: str | None) -> bool:
    return (not pids or other.process.pid in pids) and (host is None or other.process.host == host)


async def _busy(store: Store, ids: set[str]) -> list[Other]:
    """Those asked that hold a task. One that has not heard of it yet may still take another: so it has to say that
    it no longer takes any, or be gone."""
    rows = await store.query("read_workers")
    return [Other.of(row) for row in rows if row[0] in ids and (row[10] or row[12] == DRAIN)]
