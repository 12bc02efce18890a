"""Pause a task: one write with why, what it waits for and when that is looked at first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perdure._model import Pause, Reason, first_look, make_pause, of_pause
from perdure._tasks import leases
from perdure._tasks.checkpoints import snapshots
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.pauses import callbacks

if TYPE_CHECKING:
    from perdure._tasks.task import Task

Json = Any


async def pause(task: Task, message: str, reason: Reason, checkpoint: Json, payload: Mapping[str, Json]) -> None:
    """What `Task.pause` promises."""
    store = task._store
    now = await store.wall_ms()
    made = make_pause(reason, message, payload, now, task._tasks._author)
    columns = {
        "pause": store.seal(task.uid, "pause", made, Pause),
        "pause_reason": reason,
        "due_at": first_look(of_pause(made), now),
    }
    raw = snapshots.document(checkpoint)[0] if checkpoint is not None else None
    stop = task._tasks._stopper(task)
    # A durable function at work here keeps its lease until it has come to a stop, as one elsewhere does.
    hold = None if stop is not None else leases.held(store, task.uid)
    if checkpoint is not None:
        hold = await task._take()
    data = {"reason": reason, "message": message}
    await moves.move(task, "pause", hold=hold, raw=raw, ended="paused", data=data, **columns)
    if stop is not None:
        stop(made.details.get("now") is True)
    if "callback" in made.payload:
        await callbacks.apply_kept(task)
