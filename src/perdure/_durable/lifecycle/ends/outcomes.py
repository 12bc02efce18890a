"""Ends of a durable function's task other than a return: it fails, or a caller cancels it.

A cancel is a request (control_watch.py). The process that holds the task fulfils it: it settles uncertain effects,
undoes the effects, newest first, and then the task is `cancelled`. Until then its status does not change. When no
process holds the task, the caller ends it, provided that this process knows the effects to undo, by their names. If
it does not, the request stays, and the next process that claims the task fulfils it: `app.run` or a worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from perdure._durable.attempt import Aside, Attempt, Paused
from perdure._durable.control import cancel_request, has_cancel_request, is_live, request_cancel
from perdure._durable.effects import failure_of, note_failure, take_back, unknown_here
from perdure._durable.lifecycle.preparation import prepare, suspend
from perdure._durable.pauses import close_question
from perdure._durable.values import declared_here, encode_error
from perdure._ground.encoding import codec
from perdure._ground.exception_text import message_of
from perdure._ground.traceback_text import trace_of
from perdure._store import SignalRow
from perdure._tasks import (
    COULD_NOT_BEGIN,
    Hold,
    Task,
    forget_lease,
    move,
    questions_of,
    release_lease,
    store_of,
    take_lease,
)
from perdure.errors import InvalidTransition, LeaseHeld

log = logging.getLogger("perdure.durable")


async def cancel(task: Task, undo: bool) -> bool:
    """Request that a durable function's task ends. Returns False for a task that can be ended without undoing anything.

    When this returns True, the request is on disk. `task.status` is then `cancelled` if no other process works on the
    task and this process could undo its effects.
    """
    store = store_of(task)
    if not await store.query("get_call", uid=task.uid):
        return False
    record = await task.record()
    if record.status not in ("running", "paused", "failed"):
        return False
    if record.status == "failed":
        await task.resume()
    if not await request_cancel(task, undo=undo):
        return False
    if is_live(task):
        return True
    if record.status == "paused":
        await _wake(task)
    try:
        hold = await take_lease(store, task.id, task.uid, record.agent, is_exclusive=True)
    except (LeaseHeld, InvalidTransition):
        return True  # the process that holds it sees the request
    try:
        await Aside(_end_here(task, hold))
    except BaseException:
        forget_lease(store, hold)  # if the store is unreachable, the lease must not be renewed: it expires
        raise
    await task.record()
    return True


async def _wake(task: Task) -> None:
    try:
        await task.resume()
    except InvalidTransition:
        await task.record()  # another process has already resumed it


async def _end_here(task: Task, hold: Hold) -> None:
    store = store_of(task)
    try:
        attempt = await prepare(store, task, hold, asyncio.get_running_loop())
        request = await cancel_request(store, task.uid)
        unknown = unknown_here(attempt) if request is not None and request["undo"] else []
    except BaseException as error:
        await release_lease(store, hold, COULD_NOT_BEGIN, error)
        raise
    if unknown:
        log.warning("task %s is to be cancelled by a process that knows %s", task.id, ", ".join(unknown))
        await release_lease(store, hold, f"to be cancelled by a process that knows {', '.join(unknown)}")
        return
    await end(task, hold, attempt)


# ── in the process that holds the task ───────────────────────────────────────────────────────────


def is_ending(attempt: Attempt, signals: Sequence[SignalRow]) -> bool:
    """True if the function must not run again: its task is being cancelled, or it failed before and its effects were
    being undone."""
    if attempt.epoch == 1:
        return False  # no attempt came before; the watch sees a request made since then
    return failure_of(attempt) is not None or has_cancel_request(signals)


async def end(task: Task, hold: Hold, attempt: Attempt) -> None:
    """Undo the effects and end the task; or pause it when a person has to help."""
    store = attempt.store
    fresh = await prepare(store, task, hold, attempt.loop)
    fresh.effects = attempt.effects
    try:
        await _withdraw_questions(fresh)
        request, failure = await cancel_request(store, task.uid), failure_of(fresh)
        undone = await take_back(fresh) if request is None or request["undo"] else 0
    except Paused:
        await suspend(task, hold, fresh)
        return
    except BaseException as error:
        if fresh.fence.closed is None:
            await release_lease(store, hold, f"interrupted: {type(error).__name__}")
        raise
    if request is not None:
        data = {"undo": request["undo"], "undone": undone}
        await move(task, "cancel", hold=hold, ended="cancelled", data=data, ends=True)
    elif failure is not None:
        await fail(task, hold, fresh, codec.decode(failure))


async def _withdraw_questions(attempt: Attempt) -> None:
    """Close the function's questions, since it is not run again. Questions about uncertain effects stay open."""
    for question in await questions_of(attempt.store, attempt.task_id, attempt.uid):
        if not question.is_about_effect:
            close_question(attempt, question.path, "withdrawn", {"withdrawn": True})


async def fail_and_undo(task: Task, hold: Hold, attempt: Attempt, error: BaseException) -> None:
    try:
        await note_failure(attempt, codec.encode(shape_of(error)))
    except BaseException:
        await release_lease(attempt.store, hold, "could not undo what it did")
        raise
    await end(task, hold, attempt)


async def fail(task: Task, hold: Hold, attempt: Attempt, shape: dict[str, Any]) -> None:
    sealed = attempt.store.seal(task.uid, "error", shape)
    await move(task, "fail", hold=hold, ended="failed", data=_event_of(shape), error=sealed)


def _event_of(shape: dict[str, Any]) -> dict[str, Any]:
    """The error for the task's history: a new attempt begins without the last one's error."""
    return {name: shape[name] for name in ("message", "traceback") if shape.get(name)}


def shape_of(error: BaseException) -> dict[str, Any]:
    """An error as it is stored: to be shown, and to be raised again."""
    message = message_of(error)[:500] or type(error).__name__
    raised = encode_error(error, declared_here(), has_trace=False)
    return {"message": message, "type": type(error).__name__, "traceback": trace_of(error), "raised": raised}
