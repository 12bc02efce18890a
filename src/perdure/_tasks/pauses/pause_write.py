"""Pause a task: one write with the reason, what it waits for, and when to look first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from perdure._model import Pause, Reason, first_look, make_pause, of_pause
from perdure._tasks import leases
from perdure._tasks.core import TaskCore, do_once, lease_of
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.lifecycle import take_lease
from perdure._tasks.once import Once, once_of
from perdure._tasks.pauses import callbacks
from perdure._tasks.state import snapshots

Json = Any


async def pause(
    task: TaskCore,
    message: str,
    reason: Reason,
    checkpoint: Json,
    payload: Mapping[str, Json],
    *,
    once: str | None = None,
) -> None:
    """Implements `Task.pause`."""
    asked = once_of(once, "pause", message, reason, checkpoint, dict(payload))
    await do_once(task, asked, lambda: _pause(task, message, reason, checkpoint, payload, asked))


async def _pause(
    task: TaskCore,
    message: str,
    reason: Reason,
    checkpoint: Json,
    payload: Mapping[str, Json],
    once: Once | None,
) -> None:
    store = task._store
    author: dict[str, Any] = json.loads(store.presence.author())
    now = await store.wall_ms()
    made = make_pause(reason, message, payload, now, author)
    columns = {
        "pause": store.seal(task.uid, "pause", made, Pause),
        "pause_reason": reason,
        "due_at": first_look(of_pause(made), now),
    }
    raw = snapshots.document(checkpoint)[0] if checkpoint is not None else None
    attempt = leases.attempt_under_way(store, task.uid)
    # A durable function that runs here keeps its lease until it has stopped, as one in another process does.
    hold = task._hold if attempt is not None else lease_of(task)
    if checkpoint is not None:
        hold = await take_lease(task)
    data = {"reason": reason, "message": message}
    await moves.move(task, "pause", hold=hold, raw=raw, ended="paused", data=data, once=once, **columns)
    if attempt is not None:
        is_urgent = made.details.get("now") is True
        attempt.loop.call_soon_threadsafe(attempt.interrupt if is_urgent else attempt.drain)
    if "callback" in made.payload:
        await callbacks.apply_kept(task)
