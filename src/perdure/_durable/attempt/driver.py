"""Drive an attempt: from the function's first line to its end, its next pause, or its divergence."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from perdure._durable.attempt import scopes
from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.blocking import threads
from perdure._durable.attempt.scopes import ScopeTask
from perdure._durable.attempt.timing import unrecorded_wake_ups, wake_ups
from perdure._durable.attempt.unwinding import Paused
from perdure.errors import StepFailed

# Scopes that the function left behind get so long to end after they were cancelled.
_GRACE_SECONDS = 5.0


async def carry_out(
    attempt: Attempt, function: Callable[..., Any], args: Any, kwargs: Any, is_async: bool = True
) -> Any:
    """The function's result or exception, if that is how the attempt ended.

    Raises:
        Paused: it was unwound, whatever the code made of that.
        ReplayDiverged: it asked for something else than its journal holds, whatever the code made of that.
        PerdureError: the attempt was closed.
    """
    loop = attempt.loop
    scopes.install(loop)
    if wake_ups.install(loop):
        unrecorded_wake_ups.install(loop)
    threads.install()
    context = copy_context()
    context.run(scopes.current.set, attempt.main)
    work = function(*args, **kwargs) if is_async else _in_thread(context.copy(), function, args, kwargs)
    attempt.driver = driver = asyncio.current_task(loop)
    attempt.cancelled = 0 if driver is None else driver.cancelling()
    attempt.body = ScopeTask(work, "", loop, context)
    raised: BaseException | None = None
    value: Any = None
    try:
        value = await attempt.body
    except BaseException as problem:
        raised = problem
    is_interrupted = raised is not None and driver is not None and driver.cancelling() > attempt.cancelled
    error = raised if is_interrupted else _judge(attempt, raised)
    attempt.is_over = True
    if attempt.activity.alive:
        await _end_scopes(attempt)
    attempt.let_go()
    if error is not None:
        raise error
    return value


def _judge(attempt: Attempt, raised: BaseException | None) -> BaseException | None:
    """Decide how the attempt really ended: the code may have caught an exception it should not have."""
    if attempt.fence.closed is not None:
        return attempt.fence.closed
    if attempt.unwinding.has_begun:
        return attempt.unwinding.leaving or Paused()
    if not attempt.cursor.is_empty:
        how = "its end" if raised is None else f"its end by {type(raised).__name__}: {raised}"
        missed = attempt.cursor.end(how, {scope.path for _, scope in attempt.activity.alive.values()})
        if missed is not None:
            error = attempt.poison(attempt.diverged(missed))
            error.__cause__ = raised
            return error
    if isinstance(raised, asyncio.CancelledError):
        return StepFailed("CancelledError", "the function was cancelled by itself")
    not_awaited = threads.error_of_not_awaited(attempt)
    if not_awaited is not None and raised is not None:
        raised.add_note(not_awaited.what)
    return raised or not_awaited


async def _end_scopes(attempt: Attempt) -> None:
    """End every task the function left behind. Tasks that never made a call may belong to a library: they stay."""
    left = [task for task, scope in attempt.activity.alive.values() if scope.track.is_used]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_GRACE_SECONDS)


# ── plain functions ──────────────────────────────────────────────────────────────────────────────


async def _in_thread(context: Context, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run a plain function in a thread of its own: it can block for days without delaying others."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def work() -> None:
        try:
            value = context.run(function, *args, **kwargs)
        except BaseException as error:
            _tell(loop, done, None, error)
        else:
            _tell(loop, done, value, None)

    threading.Thread(target=work, name="perdure-function", daemon=True).start()
    return await done


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    def tell() -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        elif isinstance(error, StopIteration):  # a future refuses it, because a coroutine must not raise it
            done.set_exception(RuntimeError("the function raised StopIteration"))
        else:
            done.set_exception(error)

    if not loop.is_closed():
        loop.call_soon_threadsafe(tell)
