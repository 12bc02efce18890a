"""Checkpoint the state of an attempt every so often (`Config.checkpoint_interval`), without being asked to.

Between two awaits of the agent's code its state is whole, so it is stored from the same event loop, and only when it
has changed. Blocking code has no such moments: there every checkpoint is asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from perdure._ground.bridge import Nap, mode
from perdure._tasks.checkpoints import checkpoint_write as checkpointing
from perdure._tasks.core import TaskCore
from perdure.errors import PerdureError

log = logging.getLogger("perdure.tasks")


@asynccontextmanager
async def saving(task: TaskCore, interval: timedelta | None) -> AsyncIterator[None]:
    if interval is None or mode.blocking:
        yield
        return
    saver = asyncio.create_task(_save(task, interval.total_seconds()), name=f"perdure saves {task.id}")
    try:
        yield
    finally:
        saver.cancel()
        await asyncio.wait([saver])


async def _save(task: TaskCore, interval: float) -> None:
    clock = task._store.clock
    while True:
        due = clock.boottime() + interval
        while (left := due - clock.boottime()) > 0:
            await Nap(min(left, clock.longest_wait))
        try:
            if not (task.is_paused or task.is_finished):
                await checkpointing.save_working_state(task)
        except PerdureError as error:  # its next call meets the same, and raises it
            log.warning("the state of task %s was not saved: %s", task.id, error.what)
