"""A task that takes longer than its time-out allows fails, wherever it is.

The time runs from its start, pauses and all. Whoever carries the task out sees it, and so does every worker.
"""

from __future__ import annotations

import asyncio

from perdure._durable.attempt import Attempt
from perdure._ground.bridge import Nap
from perdure._tasks import fail_overdue


def expire(attempt: Attempt, deadline_at: int) -> asyncio.Task[None]:
    """End the attempt when the time of its task is over: its task has failed, and nothing more of it is run."""
    return attempt.loop.create_task(_watch(attempt, deadline_at))


async def _watch(attempt: Attempt, deadline_at: int) -> None:
    store = attempt.store
    # Every worker looks too, so where the time has to be asked for, it is not asked for all the time.
    longest = store.clock.longest_wait * (1 if store.engine.is_local else 10)
    while (left := deadline_at - await store.wall_ms()) > 0:
        await Nap(min(left / 1000, longest))
    if attempt.task is None:
        return
    error = await fail_overdue(attempt.task, deadline_at)
    if error is not None:
        attempt.poison(error)
        if attempt.body is not None:
            attempt.body.cancel()
