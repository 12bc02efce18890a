"""An attempt that has lost its lease: stop it, and record in the store when all of its code has stopped.

The attempt that took over may find an effect without an outcome. It must not settle that effect while the old process
may still be running it, so it would have to wait for the effect's whole time-out. A process that was only slow can end
that wait sooner. It notices that it lost the lease (a write is refused, or a look at its leases shows it), cancels its
code, and after the last effect has ended it adds STOPPED to the end of its attempt. That write needs no lease.

An effect that cannot be cancelled, because it runs in a thread, delays this until it ends. Its deadline is in its
intent, and settling.py waits no longer than that.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure._durable.attempt.attempt import Attempt
from perdure._store import HoldingRow, Store, Write
from perdure.errors import LeaseLost, StoreClosed

# Added to how an attempt ended, once nothing of it runs.
STOPPED = ", and has stopped since"


async def find_lost(store: Store, attempts: Iterable[Attempt]) -> list[Attempt]:
    """The attempts of this process that have lost their lease."""
    asked = list(attempts)  # before the leases are read: one that begins meanwhile would seem to have none
    rows = await store.rows(HoldingRow, "read_holding", worker=store.presence.worker)
    held = {(row.uid, row.epoch) for row in rows}
    return [attempt for attempt in asked if (attempt.uid, attempt.epoch) not in held]


def stop(attempt: Attempt) -> None:
    """End an attempt that lost its lease or is closed: its code is cancelled, and so are its effects."""
    if attempt.is_over or attempt.unwinding.has_begun:
        return
    if attempt.fence.closed is None:
        attempt.poison(LeaseLost(attempt.task_id, "another attempt took over while this one stood still"))
    attempt.unwinding.interrupt()


def stand_down(attempt: Attempt) -> None:
    """Say that nothing of a refused attempt runs, unless an effect of it still does: then its end says so."""
    fence, store = attempt.fence, attempt.store
    if fence.closed is None or attempt.activity.has_effects:
        return
    params = {"uid": attempt.uid, "epoch": attempt.epoch, "worker": fence.worker, "stopped": STOPPED}
    try:
        store.committer.submit(Write(store.committer, "stand_down", params, attempt.key))
    except StoreClosed:
        return  # the process leaves, and its death will tell
