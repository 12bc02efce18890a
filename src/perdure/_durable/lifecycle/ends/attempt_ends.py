"""Handle an attempt that ended without a result: a pause, a failure, a cancellation, or a lease given back."""

from __future__ import annotations

import asyncio
import inspect
from traceback import walk_tb
from typing import Any

from perdure._durable.attempt import (
    Attempt,
    Paused,
    advise_on_fork,
    is_leaving,
)
from perdure._durable.control import why_drained
from perdure._durable.declare import DurableFunction
from perdure._durable.lifecycle.ends import failure_policy, outcomes
from perdure._durable.lifecycle.ends.failure_note import add_failure_note
from perdure._durable.lifecycle.preparation import suspend
from perdure._durable.values import recorded_as
from perdure._ground.signal_handlers import was_raised_by_a_handler
from perdure._ground.traceback_text import trace_of
from perdure._tasks import (
    Hold,
    Task,
    forget_lease,
    release_lease,
)
from perdure.errors import (
    PerdureError,
    ReplayDiverged,
    StoreUnavailable,
)

HALTED = "stopped by the kill switch"


def _is_of(function: DurableFunction[..., Any], error: BaseException) -> bool:
    """True if the error passed through the function's own code in this thread. If so, an error raised by a signal
    handler belongs to the function; otherwise it only interrupts this process."""
    code = getattr(inspect.unwrap(function.function), "__code__", None)
    return any(frame.f_code is code for frame, _ in walk_tb(error.__traceback__))


async def end_attempt(
    task: Task, hold: Hold, attempt: Attempt, function: DurableFunction[..., Any], error: BaseException
) -> None:
    """End an attempt that paused, diverged, lost its lease, was cancelled or interrupted, or failed."""
    closed = attempt.fence.closed
    if isinstance(closed, ReplayDiverged) or isinstance(error, ReplayDiverged):
        found = closed if isinstance(closed, ReplayDiverged) else error
        attempt.fence.closed = None
        await pause_diverged(task, found)
        raise found
    if closed is not None:
        forget_lease(attempt.store, hold)
        raise closed from error
    is_foreign = was_raised_by_a_handler(error) and not _is_of(function, error)
    if is_foreign or (is_leaving(error) and not isinstance(error, Paused | asyncio.CancelledError)):
        await release_lease(attempt.store, hold, f"interrupted: {type(error).__name__}")
        raise error
    if attempt.unwinding.halted and not is_cancelled_from_outside(attempt):
        await attempt.flush()
        await release_lease(attempt.store, hold, HALTED)
        return
    if attempt.unwinding.stopping and not is_cancelled_from_outside(attempt):
        await attempt.flush()
        await outcomes.end(task, hold, attempt)
        return
    if attempt.unwinding.draining and not is_cancelled_from_outside(attempt):
        await attempt.flush()
        await release_lease(attempt.store, hold, await why_drained(attempt))
        return
    if attempt.unwinding.questions and (attempt.unwinding.has_begun or isinstance(error, Paused)):
        await suspend(task, hold, attempt)
        if is_cancelled_from_outside(attempt):  # while it paused
            raise asyncio.CancelledError
        return
    if is_leaving(error):
        # Paused here means: it was cancelled while it carried over.
        found = asyncio.CancelledError() if isinstance(error, Paused) else error
        await release_lease(attempt.store, hold, f"interrupted: {type(found).__name__}")
        raise found
    if isinstance(error, StoreUnavailable) and recorded_as(error) is None:
        await release_lease(attempt.store, hold, f"interrupted: {type(error).__name__}")
        raise error  # the function has not failed: the store was unreachable
    choice = await failure_policy.choose(task, attempt, error)
    if choice.wait is not None:
        await failure_policy.try_later(task, hold, attempt, choice)
        return
    if choice.pauses:
        await failure_policy.ask(task, hold, attempt, choice)
    elif function.compensate:
        await outcomes.fail_and_undo(task, hold, attempt, error)
    else:
        await outcomes.fail(task, hold, attempt, outcomes.shape_of(error))
        add_failure_note(error, task.id, "has failed")
    raise error


def is_cancelled_from_outside(attempt: Attempt) -> bool:
    """True if the asyncio task that makes the attempt was cancelled meanwhile."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > attempt.cancelled


async def pause_diverged(task: Task, error: BaseException) -> None:
    details: dict[str, Any] = {"diverged": True, "traceback": trace_of(error)}
    if isinstance(error, ReplayDiverged):
        await advise_on_fork(task, error)
        details["advice"] = error.do
    message = error.what if isinstance(error, PerdureError) else str(error)
    await task.pause(message, reason="human_input", **details)
