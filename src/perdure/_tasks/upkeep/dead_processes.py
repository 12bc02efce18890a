"""Which processes have registered, which of them are proven dead, and what the dead still hold.

A lease outlives its holder until somebody takes it over. Until then the task's status says `running`, and nobody
works on it: whoever lists tasks should hear of that.
"""

from __future__ import annotations

from typing import NamedTuple

from perdure._ground.ids import Process, is_proven_dead
from perdure._store import Store, WorkerRow


class WorkerSeen(NamedTuple):
    """A process that has registered."""

    id: str
    process: Process
    user: str
    leases: int
    is_dead: bool  # proven; False when we cannot know


class Left(NamedTuple):
    """A task whose lease a dead process holds."""

    uid: str
    task_id: str
    by: WorkerSeen


async def see_workers(store: Store) -> list[WorkerSeen]:
    found = []
    for one in await store.rows(WorkerRow, "read_workers"):
        process = Process(one.host, one.boot_id, one.pid_ns, one.pid, one.pid_start)
        is_dead = is_proven_dead(process, same_machine=store.engine.is_local)
        found.append(WorkerSeen(one.id, process, one.user, one.leases, is_dead))
    return found


async def left_by_the_dead(store: Store) -> list[Left]:
    """The tasks that nobody works on, though they look so."""
    dead = {worker.id: worker for worker in await see_workers(store) if worker.is_dead and worker.leases}
    if not dead:
        return []
    held = await store.query("read_held")
    return [Left(uid, task_id, dead[worker]) for worker, uid, _, task_id, _ in held if worker in dead]
