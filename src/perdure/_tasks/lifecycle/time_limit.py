"""A task that takes longer than its `Config.timeout` allows fails. The time runs from its beginning, pauses and all."""

from __future__ import annotations

from perdure._ground.clock import moment
from perdure._tasks import leases
from perdure._tasks.core import TaskCore
from perdure._tasks.leases import Hold
from perdure._tasks.lifecycle import status_moves as moves
from perdure.errors import InvalidTransition, NotFound, TimedOut


async def take_lease(task: TaskCore) -> Hold:
    """The task's lease, for this process, unless the task's time is over.

    Raises:
        TimedOut: its time is over; it has failed.
        LeaseHeld: another attempt is alive.
        InvalidTransition: the task is paused, finished, or waits for others.
    """
    await check_time(task)
    if task._hold is not None:
        return task._hold
    is_new, task._is_new = task._is_new, False
    return await leases.take(task._store, task.id, task.uid, task._agent, is_new=is_new)


async def check_time(task: TaskCore) -> None:
    """Have the task fail if its time is over.

    Raises:
        TimedOut: it was.
    """
    if task._deadline_at is not None and task._store.clock.now_ms() >= task._deadline_at:
        late = await fail_overdue(task, task._deadline_at)
        if late is not None:
            raise late


async def fail_overdue(task: TaskCore, deadline_at: int) -> TimedOut | None:
    """Have the task fail; why, or None when it had ended already."""
    message = f"task {task.id!r} was to end by {moment(deadline_at).isoformat(timespec='milliseconds')}"
    sealed = task._store.seal(task.uid, "error", {"message": message, "type": "TimedOut"})
    try:
        await moves.move(task, "fail", data={"message": message}, ended="timed out", error=sealed)
    except (InvalidTransition, NotFound):
        return None
    do = "fork it: the copy goes on without a limit; or start another one with more time"
    return TimedOut(message, kept="all that it had recorded", do=do)
