"""`async with task.attempt()`: one go at a task, with an end that is recorded.

What an exception means is the task's own choice (`Config.on_failure`): another attempt may follow, up to
`max_retries` of them, or the task pauses, or it fails. The exception itself goes on to the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

from perdure._ground.exception_text import in_one_line, message_of, name_and_message
from perdure._ground.known_secrets import redact
from perdure._ground.traceback_text import trace_of
from perdure._model import Config
from perdure._tasks import leases
from perdure._tasks.checkpoints import saving
from perdure._tasks.core import TaskCore
from perdure._tasks.leases import Hold
from perdure._tasks.lifecycle import check_time, fail
from perdure._tasks.pauses import pause_write
from perdure.errors import LeaseHeld, LeaseLost, PerdureError

T = TypeVar("T", bound=TaskCore)

# What the record of an attempt says of an exception, at most.
_SHORT = 200


@asynccontextmanager
async def attempt_of(task: T, *, take_over: bool = False) -> AsyncIterator[T]:
    hold = await leases.take(task._store, task.id, task.uid, task._agent, is_exclusive=True, take_over=take_over)
    try:
        config = await task._refresh(hold)
        async with saving(task, config.checkpoint_interval):
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


async def _release(task: TaskCore, hold: Hold, ended: str) -> None:
    if leases.held(task._store, task.uid) is hold:
        await leases.release(task._store, hold, ended)


async def _failed(task: TaskCore, hold: Hold, error: Exception) -> None:
    if leases.held(task._store, task.uid) is not hold:
        return  # completed, paused or failed inside the block: that is its end
    what = redact(in_one_line(name_and_message(error)))[:_SHORT]
    try:
        record = await task.record()
        errors = sum(attempt.ended.startswith("error") for attempt in record.attempts)
        choice = after_error(record.config, errors + 1)
        if choice == "fail":
            name = type(error).__name__
            message = message_of(error)[:_SHORT] or name
            await fail(task, {"message": message, "type": name, "traceback": trace_of(error)})
        elif choice == "pause":
            payload = {"error": what, "traceback": trace_of(error)}
            await pause_write.pause(task, f"an attempt failed: {what}", "human_input", None, payload)
        else:
            await leases.release(task._store, hold, f"error: {what}", error)
    except (LeaseLost, LeaseHeld):
        leases.forget(task._store, hold)
    except PerdureError as trouble:
        error.add_note(f"perdure could not record the end of this attempt: {trouble.what}")
        leases.forget(task._store, hold)


def after_error(config: Config, errors: int) -> Literal["retry", "pause", "fail"]:
    """What follows the `errors`th attempt that ended in an exception."""
    chosen = config.on_failure or "retry"
    return "fail" if chosen == "retry" and errors > config.max_retries else chosen
