"""Checkpoint the state of an attempt every so often (`Config.checkpoint_interval`), without being asked to.

Between two awaits of the agent's code its state is consistent. So it is stored from the same event loop, and only when
it has changed. Blocking code has no such moments: it asks for each checkpoint itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from perdure._ground.bridge import Nap, mode
from perdure._ground.clock import Clock
from perdure._tasks.core import TaskCore
from perdure.errors import PerdureError

log = logging.getLogger("perdure.tasks")


@asynccontextmanager
async def saving(
    task: TaskCore, interval: timedelta | None, clock: Clock, save: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Have `save` called every so often while the block lasts."""
    if interval is None or mode.blocking:
        yield
        return
    saver = asyncio.create_task(_save(task, interval.total_seconds(), clock, save), name=f"perdure saves {task.id}")
    try:
        yield
    finally:
        saver.cancel()
        await asyncio.wait([saver])


async def _save(task: TaskCore, interval: float, clock: Clock, save: Callable[[], Awaitable[None]]) -> None:
    while True:
        due = clock.boottime() + interval
        while (left := due - clock.boottime()) > 0:
            await Nap(min(left, clock.longest_wait))
        try:
            if not (task.is_paused or task.is_finished):
                await save()
        except PerdureError as error:  # its next call meets the same, and raises it
            log.warning("the state of task %s was not saved: %s", task.id, error.what)
