"""Somebody wants a durable function's task to end: the wish, kept until whoever has the task fulfils it.

A wish is a signal to the task, so it outlives everybody. A process that claims the task finds it there; one that
is working on it looks every second, and is told at once if the wish was made in the same process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perdure._durable.run import Run
from perdure._ground.hop import Nap
from perdure._store import Store
from perdure._tasks import Task
from perdure.errors import PerdureError

CANCEL = "~cancel"
_LOOK_SECONDS = 1.0

_live: dict[tuple[int, str], Run] = {}


async def wish_to_cancel(task: Task, *, undo: bool) -> bool:
    """Put the wish on record; False when the task has ended meanwhile."""
    store = task._store
    params = {
        **task._event("cancel asked for", {"undo": undo}),
        "name": CANCEL,
        "value": store.seal(task.uid, "answer", {"undo": undo}),
        "once": None,
    }
    if await store.verb("send_signal", task.uid, params, key=task.id) is None:
        return False
    run = _live.get((id(store.engine), task.uid))
    if run is not None:
        run.loop.call_soon_threadsafe(run.stop)
    return True


def is_live(task: Task) -> bool:
    """Whether an attempt of this very process is working on it."""
    return (id(task._store.engine), task.uid) in _live


def stop_soon(store: Store, uid: str) -> None:
    """Have the attempt of this process give its task back at the next safe point, for another to go on."""
    run = _live.get((id(store.engine), uid))
    if run is not None:
        run.drain()


async def wish_of(store: Store, uid: str) -> dict[str, Any] | None:
    """The wish to cancel, if there is one: the first that was made."""
    rows = await store.query("read_signals", uid=uid)
    found: list[dict[str, Any]] = [store.unseal(uid, "answer", row[2]) for row in rows if row[0] == CANCEL]
    return found[0] if found else None


@contextmanager
def watching(run: Run) -> Iterator[None]:
    """Have the attempt stopped when somebody wants its task to end."""
    key = (id(run.store.engine), run.uid)
    _live[key] = run
    looks: list[asyncio.Task[None]] = []
    # Most attempts are over before the first look, and cost no task of their own.
    timer = run.loop.call_later(_LOOK_SECONDS, lambda: looks.append(run.loop.create_task(_look(run))))
    try:
        yield
    finally:
        timer.cancel()
        for look in looks:
            look.cancel()
        if _live.get(key) is run:
            del _live[key]


async def _look(run: Run) -> None:
    while run.fence.closed is None:
        try:
            if await wish_of(run.store, run.uid) is not None:
                run.stop()
                return
        except PerdureError:
            pass  # the store is out of reach; the attempt will notice by itself
        await Nap(_LOOK_SECONDS)
