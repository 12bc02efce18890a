"""`async with task.attempt()`: one go at a task, with an end that is recorded.

The task decides what an exception means (`Config.on_failure`): another attempt follows, up to `max_retries` of them, or
the task pauses, or it fails. The exception itself is raised to the caller.

A single write from outside needs the lease too, but is not an attempt at the work: `in_one_call`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, TypeVar

from perdure._ground.bridge import Nap
from perdure._ground.exception_text import in_one_line
from perdure._ground.secrets.known_secrets import redact
from perdure._model import Config
from perdure._tasks import leases
from perdure._tasks.checkpoints import save_working_state, saving
from perdure._tasks.core import TaskCore
from perdure._tasks.leases import Hold, Uncaught, uncaught
from perdure._tasks.lifecycle import check_time, fail
from perdure._tasks.pauses import pause_write
from perdure.errors import Conflict, LeaseHeld, LeaseLost, PerdureError

T = TypeVar("T", bound=TaskCore)
R = TypeVar("R")

# The most characters of an exception that the record of an attempt keeps.
_SHORT = 200

# How long a call waits for a lease that others have for a call of their own, in seconds.
_PATIENCE, _BETWEEN_TRIES = 1.0, 0.02


@asynccontextmanager
async def attempt_of(task: T, *, take_over: bool = False) -> AsyncIterator[T]:
    hold = await leases.take(task._store, task.id, task.uid, task._agent, is_exclusive=True, take_over=take_over)
    try:
        config = await task._refresh(hold)
        save = partial(save_working_state, task)
        async with saving(task, config.checkpoint_interval, task._store.clock, save):
            yield task
        await check_time(task)
    except LeaseLost:
        leases.forget(task._store, hold)
        raise
    except Exception as error:
        await _failed(task, hold, error)
        raise
    except BaseException as end:
        await _release(task, hold, f"interrupted: {type(end).__name__}")
        raise
    await _release(task, hold, "released")


async def in_one_call(task: T, act: Callable[[T], Awaitable[R]]) -> R:
    """Have `act` write under a lease that is taken for this call and given back after it.

    No attempt fails by its errors: they are the caller's, and the task stays as it was. Somebody else who has the lease
    for one call is waited for. A write that was made before, by the same key, is found without the lease.
    """
    until = time.monotonic() + _PATIENCE
    hold: Hold | None = None
    try:
        while hold is None:
            try:
                hold = await leases.take(task._store, task.id, task.uid, task._agent, is_exclusive=True)
            except LeaseHeld:
                if time.monotonic() >= until:
                    if leases.held(task._store, task.uid) is not None:
                        raise  # an attempt of this process, which `act` would write for
                    break
                await Nap(_BETWEEN_TRIES)
            except Conflict:
                break
        if hold is not None:
            await task._refresh(hold)
        return await act(task)
    finally:
        left = leases.held(task._store, task.uid)
        if left is not None and (left is hold or not left.is_exclusive):
            await leases.release(task._store, left, "released")


async def _release(task: TaskCore, hold: Hold, ended: str) -> None:
    if leases.held(task._store, task.uid) is hold:
        await leases.release(task._store, hold, ended)


async def _failed(task: TaskCore, hold: Hold, error: Exception) -> None:
    if leases.held(task._store, task.uid) is not hold:
        return  # completed, paused or failed inside the block: that is its end
    try:
        await end_by_error(task, hold, uncaught(error))
    except (LeaseLost, LeaseHeld):
        leases.forget(task._store, hold)
    except PerdureError as trouble:
        error.add_note(f"perdure could not record the end of this attempt: {trouble.what}")
        leases.forget(task._store, hold)


async def end_by_error(task: TaskCore, hold: Hold, error: Uncaught) -> None:
    """Record that an exception ended this attempt, and do what the task's config says follows."""
    what = redact(in_one_line(f"{error.type}: {error.message}" if error.message else error.type))[:_SHORT]
    record = await task.record()
    errors = sum(attempt.ended.startswith("error") for attempt in record.attempts)
    choice = after_error(record.config, errors + 1)
    if choice == "fail":
        message = error.message[:_SHORT] or error.type
        await fail(task, {"message": message, "type": error.type, "traceback": error.traceback})
    elif choice == "pause":
        payload = {"error": what, "traceback": error.traceback}
        await pause_write.pause(task, f"an attempt failed: {what}", "human_input", None, payload)
    else:
        await leases.release(task._store, hold, f"error: {what}", error)


def after_error(config: Config, errors: int) -> Literal["retry", "pause", "fail"]:
    """Decide what follows after the `errors`th attempt that ended in an exception."""
    chosen = config.on_failure or "retry"
    return "fail" if chosen == "retry" and errors > config.max_retries else chosen
