"""Find the registered processes that are proven dead, and the leases that they still hold.

A lease outlives its holder until another process takes it over. Until then the task's status is `running` although no
process works on it, so lists of tasks should say so.
"""

from __future__ import annotations

from typing import NamedTuple

from perdure._ground.ids import Process, is_proven_dead
from perdure._store import LeaseRow, Store, WorkerRow


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
    namespace: str
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
    """The tasks with a live status and a dead process."""
    dead = {worker.id: worker for worker in await see_workers(store) if worker.is_dead and worker.leases}
    if not dead:
        return []
    held = await store.rows(LeaseRow, "read_held")
    return [Left(row.task_uid, row.namespace, row.id, dead[row.worker]) for row in held if row.worker in dead]
