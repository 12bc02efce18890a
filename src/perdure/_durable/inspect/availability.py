"""Why no worker carries a task on: which live workers could, and what keeps them from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from perdure._ground.clock import moment
from perdure._ground.ids import Process, is_proven_dead
from perdure._model import Pause
from perdure._store import CallRow, Store, TaskRow, WorkerRow


class LiveWorker(NamedTuple):
    """What a live worker has announced that it can carry on."""

    queues: Sequence[str]
    functions: Sequence[Sequence[Any]]  # name, version, whether it upgrades older versions
    commands: bool = True  # whether it runs commands of stored pauses; older versions do not announce it

    def knows(self, name: str, version: int) -> bool:
        return any(
            known == name and (of == version or (upgrades and of > version)) for known, of, upgrades in self.functions
        )


async def why_unclaimed(store: Store, call: CallRow) -> str:
    """Why no worker holds the task of this call."""
    name, version, queue, not_before = call.function, call.version, call.queue, call.not_before
    if not_before is not None and not_before > await store.wall_ms():
        return f"it waits until {moment(not_before).isoformat(timespec='seconds')} before its next attempt"
    live = await _live_workers(store)
    if not live:
        return "no worker is running: `perdure worker module:app` starts one, or run the program again that started it"
    knowing = [worker for worker in live if worker.knows(name, version)]
    if not knowing:
        versions = sorted({of for worker in live for known, of, _ in worker.functions if known == name})
        others = f"; they know {', '.join(f'version {of}' for of in versions)}" if versions else ""
        what = f"{name} version {version}" if version > 1 or versions else str(name)
        return f"no live worker knows {what}{others}: start one that has its code"
    if not any(queue in worker.queues for worker in knowing):
        return f"no live worker takes tasks of queue {queue!r}"
    return "a worker takes it when it is its turn"


async def why_not_checked(store: Store, pause: Pause) -> str:
    """Why no live worker makes the check that a plain pause waits for; empty when one can."""
    if "command" not in pause.payload:
        return ""
    live = await _live_workers(store)
    if any(worker.commands for worker in live):
        return ""
    missing = "no live worker may run its command" if live else "no worker is running that may run its command"
    return f"{missing}: start one with PERDURE_POLL_COMMANDS=1, or perdure resume"


async def why_not_at_work(store: Store, uid: str) -> str:
    """Why no worker carries on a task that is ready; empty when one does, or when the task waits for something."""
    holder, call = await store.query("read_holder", uid=uid), await store.rows(CallRow, "get_call", uid=uid)
    row = TaskRow(*(await store.query("get_task_by_uid", uid=uid))[0])
    if row.status != "running" or not call or (holder and holder[0][1]):
        return ""
    return await why_unclaimed(store, call[0])


async def _live_workers(store: Store) -> list[LiveWorker]:
    return [_live_worker(row) for row in await store.rows(WorkerRow, "read_workers") if is_live(store, row)]


def is_live(store: Store, row: WorkerRow) -> bool:
    """Whether it takes tasks and is not proven dead. A worker elsewhere shows only by its silence, which takes time."""
    if not row.knows or row.wish:
        return False
    process = Process(row.host, row.boot_id, row.pid_ns, row.pid, row.pid_start)
    return not is_proven_dead(process, same_machine=store.engine.is_local)


def _live_worker(row: WorkerRow) -> LiveWorker:
    said = json.loads(row.knows or "{}")
    return LiveWorker(said["queues"], said["functions"], said.get("commands", True))
