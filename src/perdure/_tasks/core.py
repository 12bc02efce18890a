"""The state of a task that every room inside this one needs: its id, its store, its newest snapshot.

`Task` derives from `TaskCore` and adds the verbs of users. The functions here are for the rooms above: users see no
attribute of perdure's own on `app.tasks` or on a task.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure._model import FINISHED, Config, Status, TaskRecord, seq_of
from perdure._store import Store, TaskRow
from perdure._tasks import leases, records
from perdure._tasks.leases import Hold
from perdure._tasks.once import Once
from perdure._tasks.state import Snapshot, snapshots
from perdure._tasks.task_row import config_of, current_row, deadline_of
from perdure.errors import Conflict, RecordDamaged

Json = Any
Key = tuple[str, str, Status]  # id, uid and status


class StoreOwner:
    """Something that is kept in a store."""

    _store: Store


class TaskCore(StoreOwner):
    """One task. It shows what was last read or written through it."""

    id: str
    uid: str
    status: Status
    state: Any
    created: bool

    def __init__(
        self, store: Store, key: Key, state: Json, snapshot: Snapshot, agent: str = "", created: bool = True
    ) -> None:
        self._store = store
        self._agent = agent
        self._hold: Hold | None = None  # of a process elsewhere that writes through this handle (holders.py)
        self._snapshot = snapshot  # the newest this handle knows of
        self._read = snapshot  # the one `state` was read from, before the code changed it
        self.id, self.uid, self.status = key
        self.state, self.created = state, created
        self._deadline_at: int | None = None  # of a task without a durable function, which has its own
        self._has_checkpoints = True  # beside the first one, as far as is known
        self._is_new = created and self.status == "running"  # so its lease is most likely still free

    def __repr__(self) -> str:
        return f"<Task {self.id!r} {self.status}>"

    @property
    def is_paused(self) -> bool:
        return self.status == "paused"

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    async def record(self) -> TaskRecord:
        """The record of the task as the store has it now."""
        row = await current_row(self._store, self.id, self.uid)
        record, snapshot = await records.load(self._store, row)
        self._snapshot = self._read = snapshot
        self.status, self.state = record.status, record.state
        return record

    async def _refresh(self, hold: Hold) -> Config:
        """Read status, state and config anew. The rest of the record is left out: it grows with every attempt."""
        row = await current_row(self._store, self.id, self.uid)
        hold.snapshot = None
        self._snapshot = self._read = await self._base(hold)
        self.status = row.status  # type: ignore[assignment]
        self.state = snapshots.contents(self._snapshot.raw)["state"]
        return config_of(self._store, row)

    async def _base(self, hold: Hold) -> Snapshot:
        """The snapshot the next checkpoint builds on: the newest one, read only when we do not have it."""
        if hold.snapshot is None:
            row = await current_row(self._store, self.id, self.uid)
            if self._snapshot.seq == row.state_seq:
                hold.snapshot = self._snapshot
            else:
                snapshot, _, damaged = await records.newest_good(self._store, row)
                if damaged:
                    await self._set_aside(row, snapshot.seq, damaged)
                hold.snapshot = snapshot
        return hold.snapshot

    async def _set_aside(self, row: TaskRow, target: int, damaged: Sequence[str]) -> None:
        """Mark checkpoints that could not be read, so that the history names them and they are not tried again."""
        seqs = [seq for name in damaged if (seq := seq_of(self.uid, name)) is not None]
        await self._invalidate(row, target, seqs, "damaged")

    async def _invalidate(self, row: TaskRow, target: int, seqs: Sequence[int], kind: str) -> bool:
        """Mark checkpoints as invalid and make `target` the state; False when the task has changed since `row`."""
        params = {
            **self._event(kind, {"checkpoints": list(seqs), "state": target}),
            "target": target,
            "seqs": json.dumps(list(seqs)),
            "version": row.version,
        }
        done = await self._store.verb("invalidate", self.uid, params, key=self.id) is not None
        hold = lease_of(self)
        if hold is not None:
            hold.snapshot = None
        return done

    def _event(self, kind: str, data: object, once: Once | None = None) -> dict[str, Any]:
        return self._store.event(self.uid, kind, data, self._agent, once.mark if once is not None else "")

    async def _has_done(self, once: Once | None) -> bool:
        """True if this request was fulfilled before, here or in another process."""
        return once is not None and await once.was_done(self._store, self.id, self.uid) is not None

    def _take_after(self, row: TaskRow) -> None:
        """Note what the row says beside the status and the state."""
        self._deadline_at = deadline_of(config_of(self._store, row), row.created_at) if row.config is not None else None
        self._has_checkpoints = row.seq > 0


async def do_once(task: TaskCore, once: Once | None, act: Callable[[], Awaitable[None]]) -> None:
    """Do it, unless this request was fulfilled before, or is by a repeat that is quicker."""
    # A write by fence needs no new lease; the write itself checks the key.
    if task._hold is None and await task._has_done(once):
        return
    try:
        await act()
    except Conflict:
        if not await task._has_done(once):
            raise


def lease_of(task: TaskCore) -> Hold | None:
    """The lease that this handle writes under: of a process elsewhere, or else this process's, if it has one."""
    return task._hold or leases.held(task._store, task.uid)


async def newest_state(store: Store, uid: str) -> tuple[TaskRow, Snapshot, Json]:
    """The task's row, its newest snapshot and the state in it.

    Raises:
        RecordDamaged: there is no row with this uid.
    """
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid)
    if row is None:
        raise RecordDamaged(f"the row of task {uid}", "it is not found by its own uid, or was deleted just now")
    state, snapshot = await state_in(store, row)
    return row, snapshot, state


async def state_in(store: Store, row: TaskRow) -> tuple[Json, Snapshot]:
    """The state that a task's row names, and its snapshot."""
    snapshot, _, _ = await records.newest_good(store, row)
    return snapshots.contents(snapshot.raw)["state"], snapshot


async def attach(store: Store, uid: str) -> TaskCore:
    """The task with this uid, with its newest state.

    Raises:
        RecordDamaged: there is no row with this uid.
    """
    row, snapshot, state = await newest_state(store, uid)
    key: Key = (row.id, uid, row.status)  # type: ignore[assignment]
    task = TaskCore(store, key, state, snapshot, row.agent, created=False)
    task._take_after(row)
    return task


# ── for the rooms above ──────────────────────────────────────────────────────────────────────────


def store_of(owner: StoreOwner) -> Store:
    """The store that the tasks, or the task, are in."""
    return owner._store


def agent_of(task: TaskCore) -> str:
    """The name of the agent that the task was created for."""
    return task._agent


def event_of(task: TaskCore, kind: str, data: object) -> dict[str, Any]:
    """The columns of an event that is added to the task's chain."""
    return task._event(kind, data)


def has_checkpoints(task: TaskCore) -> bool:
    """True if the task has checkpoints after the first one, as far as this handle knows."""
    return task._has_checkpoints
