"""Fail a task that exceeds its time-out, wherever it is.

The time counts from the task's start, including pauses. The process that carries the task on checks it, and so does
every worker.
"""

from __future__ import annotations

import asyncio

from perdure._durable.attempt import Attempt
from perdure._ground.bridge import Nap
from perdure._tasks import fail_overdue


def expire(attempt: Attempt, deadline_at: int) -> asyncio.Task[None]:
    """Watch the deadline: when it passes, fail the task and end the attempt."""
    return attempt.loop.create_task(_watch(attempt, deadline_at))


async def _watch(attempt: Attempt, deadline_at: int) -> None:
    store = attempt.store
    # Every worker checks too. So where the time must be asked from a server, ask less often.
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
