"""Change a task's status: one write, tried again while the move is lawful and only the state has moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perdure._ground.exception_text import message_of
from perdure._ground.traceback_text import trace_of
from perdure._model import FINISHED, MOVES, Status
from perdure._tasks import leases, refusals
from perdure._tasks.checkpoints import NO_FRAME, Snapshot, snapshots, unseen_changes
from perdure._tasks.leases import Hold
from perdure.errors import InvalidInput, LeaseLost

if TYPE_CHECKING:
    from perdure._tasks.task import Task

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


async def move(task: Task, verb: str, *, hold: Hold | None = None, raw: bytes | None = None, **what: Any) -> None:
    """Make the move, with a snapshot if one is given.

    Raises:
        InvalidTransition: the task's status does not allow it; nothing was written.
        LeaseLost: another attempt has taken over; nothing was written.
        StaleVersion: others have changed what the snapshot changes since the task was read; nothing was written.
    """
    read = task._read
    while True:
        before = await task._base(hold) if hold is not None and raw is not None else None
        given = raw
        if raw is not None and before is not None:
            combined = unseen_changes.combine(task.id, read, before, raw)
            given = raw if combined is None else combined[0]
        if await try_move(task, verb, hold=hold, raw=given, before=before, **what):
            return
        await explain(task, verb, hold)


async def try_move(
    task: Task,
    verb: str,
    *,
    hold: Hold | None = None,
    raw: bytes | None = None,
    before: Snapshot | None = None,
    data: Any = None,
    ended: str = "",
    ends: bool = False,
    only_from: Status | None = None,
    **columns: Any,
) -> bool:
    """One try; False when it was refused, for whatever reason. `only_from` allows one of the lawful befores.

    `ends` says that no attempt goes on after it: always so for the holder's own move and for an end.
    """
    lawful = MOVES[verb]
    store, event = task._store, task._event(_EVENTS[verb], data)
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


async def explain(task: Task, verb: str, hold: Hold | None) -> None:
    """Raise why the verb was refused; return when it is worth another try."""
    row = await refusals.current_row(task._store, task.id, task.uid)
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


def error_of(error: Any) -> dict[str, Any]:
    """An error as it is kept: a mapping with a message, whatever else it says."""
    if isinstance(error, BaseException):
        shape = {"message": message_of(error) or type(error).__name__, "type": type(error).__name__}
        trace = trace_of(error)
        return {**shape, "traceback": trace} if trace else shape
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str) or not error["message"]:
        raise InvalidInput(
            "an error is a mapping with a message", do='write fail({"message": "what went wrong", …}) or fail("…")'
        )
    return dict(error)
