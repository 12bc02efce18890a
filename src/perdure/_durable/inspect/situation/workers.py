"""Which processes are alive: workers that could take a task, and the holders of leases.

A process on this machine can be proven dead. Of one elsewhere only its silence shows, which takes two looks: how long
each process has been silent is remembered here, for each store, from look to look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from weakref import WeakKeyDictionary

from perdure._durable.inspect.situation.facts import LiveWorker
from perdure._ground.ids import Process, is_proven_dead
from perdure._model import HeldBy, Holder, Sighting
from perdure._store import Store, WorkerRow

# There are three beats in a lease; a process that has missed two is silent.
_SILENT_PART = 2 / 3
_seen: WeakKeyDictionary[Store, dict[str, Sighting]] = WeakKeyDictionary()


def live_workers(store: Store, rows: Sequence[WorkerRow]) -> list[LiveWorker]:
    """The announcement of each live worker. A worker without a readable one takes no tasks."""
    found = [_announced(row) for row in rows if is_live(store, row)]
    return [one for one in found if one is not None]


def is_live(store: Store, row: WorkerRow) -> bool:
    """True if the worker takes tasks: it is not proven dead, and it has not been silent for a whole lease while this
    process was looking."""
    if not row.knows or row.wish:
        return False
    seen = _seen.get(store, {}).get(row.id)
    lease = timedelta(milliseconds=row.lease_ms)
    is_silent = seen is not None and seen.beats == row.beats and seen.is_over(store.clock.boottime(), lease)
    return not is_silent and not is_proven_dead(_process(row), same_machine=store.engine.is_local)


def look(store: Store, rows: Sequence[WorkerRow]) -> Mapping[str, HeldBy]:
    """Each registered process as a holder of leases, by its id. Remembers what it saw for the next look."""
    now, before = store.clock.boottime(), _seen.get(store, {})
    after: dict[str, Sighting] = {}
    found: dict[str, HeldBy] = {}
    for row in rows:
        lease = timedelta(milliseconds=row.lease_ms)
        sighting = after[row.id] = Sighting.of(Holder(0, row.id, row.beats), now, before.get(row.id), lease)
        found[row.id] = _holder(store, row, now - sighting.since, lease.total_seconds())
    _seen[store] = after
    return found


def _holder(store: Store, row: WorkerRow, silent: float, lease: float) -> HeldBy:
    is_own = row.id == store.presence.worker
    is_dead = not is_own and is_proven_dead(_process(row), same_machine=store.engine.is_local)
    is_lost = not is_own and silent >= lease
    is_silent = not is_own and not is_dead and silent >= lease * _SILENT_PART
    return HeldBy(
        user=row.user,
        host=row.host,
        pid=row.pid,
        state="dead" if is_dead or is_lost else "silent" if is_silent else "alive",
        silent_seconds=round(silent, 1) if is_silent else 0.0,
        lease_seconds=lease,
    )


def _announced(row: WorkerRow) -> LiveWorker | None:
    try:
        said = json.loads(row.knows or "{}")
        return LiveWorker(said["queues"], said["functions"], said.get("commands", True), row.host, row.pid)
    except (ValueError, LookupError, AttributeError, TypeError):
        return None


def _process(row: WorkerRow) -> Process:
    return Process(row.host, row.boot_id, row.pid_ns, row.pid, row.pid_start)
