"""Ask the workers of a store to drain, and wait until they have."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from perdure._ground.bridge import Nap
from perdure._ground.ids import is_proven_dead
from perdure._store import Store, WorkerRow, Write
from perdure._worker.losses import Peer
from perdure._worker.registration import DRAIN
from perdure.errors import TimedOut

_LOOK_SECONDS = 0.02


async def drain_workers(store: Store, *, pids: Collection[int], host: str | None, timeout: timedelta) -> list[Peer]:
    """Returns the workers that were asked, once they hold no tasks.

    Raises:
        TimedOut: some still hold tasks; they keep draining.
    """
    asked = [other for other in await _workers(store) if _is_meant(other, pids, host)]
    await ask_to_drain(store, [other.id for other in asked])
    await until_drained(store, {other.id for other in asked}, timeout)
    return asked


async def ask_to_drain(store: Store, ids: Collection[str]) -> None:
    """Store the request for these workers; each looks for it now and then."""
    for id in ids:
        await Write(store.committer, "ask_worker", {"worker": id, "wish": DRAIN}, key=f"worker {id}")


async def until_drained(store: Store, ids: set[str], timeout: timedelta) -> None:
    """Wait until these workers hold no tasks.

    Raises:
        TimedOut: some still hold tasks; they keep draining.
    """
    end = store.clock.boottime() + timeout.total_seconds()
    while busy := await _busy(store, ids):
        if store.clock.boottime() >= end:
            names = ", ".join(f"pid {other.process.pid} on {other.process.host}" for other in busy)
            raise TimedOut(f"{names} still at work after {timeout}", kept="the request; those workers keep draining")
        await Nap(_LOOK_SECONDS)


async def _workers(store: Store) -> list[Peer]:
    """All registered workers that are not proven dead."""
    rows = [row for row in await store.rows(WorkerRow, "read_workers") if row.knows]
    others = [Peer.of(row) for row in rows]
    return [other for other in others if not is_proven_dead(other.process, same_machine=store.engine.is_local)]


def _is_meant(other: Peer, pids: Collection[int], host: str | None) -> bool:
    return (not pids or other.process.pid in pids) and (host is None or other.process.host == host)


async def _busy(store: Store, ids: set[str]) -> list[Peer]:
    """The asked workers that hold a task or have not replied yet: a worker can claim more tasks until it replies or is
    gone."""
    rows = await store.rows(WorkerRow, "read_workers")
    return [Peer.of(row) for row in rows if row.id in ids and (row.leases or row.wish == DRAIN)]
