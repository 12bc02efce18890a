"""`app.workers`: list the processes that use the store, and ask workers to drain.

Owns the announcements of a process. The reaper decides whether its tasks are given to others.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct

from perdure._ground.clock import moment
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import Process, is_proven_dead
from perdure._model import Holder, Sighting, TaskFilter
from perdure._store import LeaseRow, Store, WorkerRow
from perdure._tasks import Tasks, is_holder, store_of
from perdure._worker.drain import ask_to_drain, until_drained
from perdure.errors import InvalidInput, NotFound

WorkerState = Literal["alive", "silent", "dead"]


class WorkerRecord(Struct, frozen=True, kw_only=True):
    """A process that is registered in the store: a worker, a program that holds leases, or a holder elsewhere."""

    id: str
    host: str
    pid: int
    user: str
    state: WorkerState  # dead: proven. silent: it missed every beat of one lease while this process watched it
    beat_age: timedelta | None  # since its last beat, as far as this process has watched it; None after one look
    lease: timedelta
    leases: int  # tasks it holds now
    started_at: datetime
    is_worker: bool  # it takes tasks of durable functions
    is_remote: bool  # a process elsewhere that is known only over a network
    concurrency: int | None
    queues: Sequence[str]
    functions: Sequence[str]
    version: str  # of perdure
    wish: str  # "drain" when it is asked to stop, "draining" once it takes no more tasks
    limits: Mapping[str, Mapping[str, Any]] = {}  # of queues, as its code has them


class QueueRecord(Struct, frozen=True, kw_only=True):
    """One queue: its limits as workers announce them, and the open tasks in it."""

    name: str
    workers: int  # live ones that take tasks from it
    in_use: int  # tasks that a process works on
    waiting: int  # tasks that may begin, and that no process works on
    oldest: datetime | None  # when the oldest waiting one last changed
    concurrency: int | None
    per_key: int | None
    rate: Sequence[Any] | None
    approximate: bool  # only the newest 1,000 open tasks were looked at


class Workers:
    """The processes that use a store."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks, self._store = tasks, store_of(tasks)
        self._seen: dict[str, Sighting] = {}

    async def list(self) -> Sequence[WorkerRecord]:
        """Every registered process. A second look tells which of them are silent."""
        rows = await self._store.rows(WorkerRow, "read_workers")
        now, before, self._seen = self._store.clock.boottime(), self._seen, {}
        records = []
        for row in rows:
            lease = timedelta(milliseconds=row.lease_ms)
            sighting = Sighting.of(Holder(0, row.id, row.beats), now, before.get(row.id), lease)
            self._seen[row.id] = sighting
            age = timedelta(seconds=now - sighting.since) if row.id in before else None
            is_silent = sighting.is_over(now, lease) and _has_to_beat(row)
            records.append(_record(self._store, row, age, is_silent))
        return records

    async def queues(self) -> Sequence[QueueRecord]:
        """The queues that live workers take tasks from, or that open tasks wait in."""
        workers = [one for one in await self.list() if one.is_worker and one.state != "dead"]
        names = {name for one in workers for name in one.queues} | set((await self._tasks.facets()).queues)
        held = {row.task_uid for row in await self._store.rows(LeaseRow, "read_held")}
        return [await self._queue(name, workers, held) for name in sorted(names)]

    async def _queue(self, name: str, workers: Sequence[WorkerRecord], held: Collection[str]) -> QueueRecord:
        wanted = TaskFilter(queue=name, status=["pending", "running"])
        page = await self._tasks.page(wanted, limit=1000)
        waiting = [one.updated_at for one in page.items if one.uid not in held and one.status == "running"]
        limits = next((one.limits[name] for one in workers if name in one.limits), {})
        return QueueRecord(
            name=name,
            workers=sum(name in one.queues for one in workers),
            in_use=sum(one.uid in held for one in page.items),
            waiting=len(waiting),
            oldest=min(waiting, default=None),
            concurrency=limits.get("concurrency"),
            per_key=limits.get("per_key"),
            rate=limits.get("rate"),
            approximate=page.cursor is not None or page.approximate,
        )

    async def drain(self, ids: Collection[str], *, wait: Duration | None = None) -> Sequence[WorkerRecord]:
        """Ask these workers to stop: they give their tasks back at the next safe point, and take no new ones.

        With `wait`, return when they hold no task any more. Without it, return when the wish is on disk.

        Raises:
            NotFound: one of them is not registered; none was asked.
            InvalidInput: one of them takes no tasks; none was asked.
            TimedOut: some still hold tasks after `wait`; they keep draining.
        """
        limit = require_timedelta("wait", wait)
        known = {one.id: one for one in await self.list()}
        for id in ids:
            if id not in known:
                raise NotFound("worker", str(id), self._store.place, do="`perdure workers` lists them")
            if not known[id].is_worker:
                raise InvalidInput(
                    f"process {id} takes no tasks, so it cannot drain", do="`perdure workers` lists them"
                )
        await ask_to_drain(self._store, ids)
        if limit is not None:
            await until_drained(self._store, set(ids), limit)
        return [known[id] for id in ids]


def _record(store: Store, row: WorkerRow, age: timedelta | None, is_silent: bool) -> WorkerRecord:
    process = Process(row.host, row.boot_id, row.pid_ns, row.pid, row.pid_start)
    is_dead = is_proven_dead(process, same_machine=store.engine.is_local)
    said = _announced(row.knows)
    concurrency = said.get("concurrency")
    return WorkerRecord(
        id=row.id,
        host=row.host,
        pid=row.pid,
        user=row.user,
        state="dead" if is_dead else "silent" if is_silent else "alive",
        beat_age=age,
        lease=timedelta(milliseconds=row.lease_ms),
        leases=row.leases,
        started_at=moment(row.started_at),
        is_worker=bool(row.knows),
        is_remote=is_holder(row.id),
        concurrency=concurrency if type(concurrency) is int else None,
        queues=_texts(said.get("queues")),
        functions=[_function(one) for one in said.get("functions") or () if isinstance(one, list) and one],
        version=str(said.get("perdure") or ""),
        wish=row.wish or "",
        limits={name: one for name, one in _mapping(said.get("limits")).items() if isinstance(one, dict)},
    )


def _has_to_beat(row: WorkerRow) -> bool:
    """True when its silence means something. A process that holds no task and takes none need not beat."""
    return bool(row.leases or row.knows or is_holder(row.id))


def _announced(knows: str | None) -> dict[str, Any]:
    try:
        said = json.loads(knows or "{}")
    except ValueError:
        return {}  # a process's claims about itself are only shown
    return said if isinstance(said, dict) else {}


def _mapping(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _texts(found: object) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list) else []


def _function(one: Sequence[Any]) -> str:
    """A function as people write it: its name, and its version after the first."""
    version = one[1] if len(one) > 1 else 1
    return str(one[0]) if version == 1 else f"{one[0]} v{version}"
