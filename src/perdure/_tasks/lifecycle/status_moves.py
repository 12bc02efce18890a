"""Change a task's status: one write, tried again while the move is lawful and only the state has moved."""

from __future__ import annotations

from typing import Any

from perdure._model import FINISHED, MOVES, Status
from perdure._tasks import leases, refusals
from perdure._tasks.core import TaskCore
from perdure._tasks.leases import Hold
from perdure._tasks.once import Once
from perdure._tasks.state import NO_FRAME, Snapshot, snapshots, unseen_changes
from perdure._tasks.task_row import current_row
from perdure.errors import LeaseLost

_EVENTS = {
    "begin": "ready",
    "pause": "paused",
    "remind": "reminded",
    "resume": "resumed",
    "complete": "completed",
    "fail": "failed",
    "cancel": "cancelled",
    "leave": "moved away",
}
_NO_COLUMNS: dict[str, Any] = {
    "pause": None,
    "pause_reason": None,
    "due_at": None,
    "result": None,
    "error": None,
    "version": None,
    "epoch": None,
    "worker": None,
}


async def move(
    task: TaskCore,
    verb: str,
    *,
    hold: Hold | None = None,
    raw: bytes | None = None,
    once: Once | None = None,
    **what: Any,
) -> None:
    """Make the move, with a snapshot if one is given; unless it was made `once` before.

    Raises:
        InvalidTransition: the task's status does not allow it; nothing was written.
        LeaseLost: another attempt has taken over; nothing was written.
        StaleVersion: others have changed what the snapshot changes since the task was read; nothing was written.
    """
    read = task._read
    while True:
        if once is not None:
            what["version"] = (await current_row(task._store, task.id, task.uid)).version
            if await task._has_done(once):
                return
        before = await task._base(hold) if hold is not None and raw is not None else None
        given = raw
        if raw is not None and before is not None:
            combined = unseen_changes.combine(task.id, read, before, raw)
            given = raw if combined is None else combined[0]
        if await try_move(task, verb, hold=hold, raw=given, before=before, once=once, **what):
            return
        await explain(task, verb, hold)


async def try_move(
    task: TaskCore,
    verb: str,
    *,
    hold: Hold | None = None,
    raw: bytes | None = None,
    before: Snapshot | None = None,
    data: object = None,
    ended: str = "",
    ends: bool = False,
    only_from: Status | None = None,
    once: Once | None = None,
    **columns: object,
) -> bool:
    """One try; False when it was refused, for whatever reason. `only_from` allows one of the lawful befores.

    `ends` says that no attempt continues after it: always true for the holder's own move and for an end.
    """
    lawful = MOVES[verb]
    store, event = task._store, task._event(_EVENTS[verb], data, once)
    frame = snapshots.build(store, task.uid, raw, before) if raw is not None else None
    params: dict[str, Any] = {**_NO_COLUMNS, **NO_FRAME, **event, **columns}
    if frame is not None:
        params.update(frame.columns(), adds=1, cause=verb)
        await snapshots.put_chunks(store, task.uid, frame, task.id)
    params.update(
        after=lawful.after,
        befores=only_from or ",".join(sorted(lawful.before)),
        finished_at=event["at"] if lawful.after in FINISHED else None,
        ends=int(ends or hold is not None or lawful.after in FINISHED),
        ended=ended,
    )
    fence = hold.fence if hold is not None else None
    row = await store.verb("move_task", task.uid, params, key=task.id, fence=fence)
    if row is None:
        return False
    task.status = lawful.after
    if hold is not None:
        leases.forget(store, hold)
    if frame is not None and raw is not None:
        task._snapshot = task._read = frame.snapshot(row[0], raw)
        task.state = snapshots.contents(raw)["state"]
    return True


async def explain(task: TaskCore, verb: str, hold: Hold | None) -> None:
    """Raise why the verb was refused; return when it is worth another try."""
    row = await current_row(task._store, task.id, task.uid)
    task.status = row.status  # type: ignore[assignment]
    fence = hold.fence if hold is not None else None
    refusal = await refusals.why(task._store, row, verb, fence=fence)
    if hold is not None:
        hold.snapshot = None
    if refusal is None:
        return
    if hold is not None and isinstance(refusal, LeaseLost):
        hold.fence.close(refusal)
        leases.forget(task._store, hold)
    raise refusal
