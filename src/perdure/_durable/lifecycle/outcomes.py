"""How a durable function's task ends other than by returning: it fails, or somebody cancels it.

Cancelling is a wish (control_watch.py). Whoever has the task fulfils it: uncertain effects are settled, what was
done is undone, the newest first, and then the task is `cancelled`. Until then its status is what it was. A task that
nobody works on is ended by the caller, if this process knows the effects that have to be undone, by their names.
If it does not, the wish stays, and the next process that claims the task, `app.run` or a worker, fulfils it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from perdure._durable.attempt import Aside, Attempt, Paused
from perdure._durable.control import is_live, is_wished, wish_of, wish_to_cancel
from perdure._durable.effects import failure_of, note_failure, take_back, unknown_here
from perdure._durable.lifecycle.preparation import prepare, suspend
from perdure._durable.pauses import close_question
from perdure._durable.values import declared_here, encode_error
from perdure._ground import codec
from perdure._ground.exception_text import message_of
from perdure._ground.traceback_text import trace_of
from perdure._store import Row
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
    """Have a durable function's task end; False when there is nothing for us to do but to say so.

    When it returns True the wish is on disk. The task is `cancelled` by then if nobody else works on it and this
    process could undo what there was; `task.status` tells.
    """
    store = store_of(task)
    if not await store.query("get_call", uid=task.uid):
        return False
    record = await task.record()
    if record.status not in ("running", "paused", "failed"):
        return False
    if record.status == "failed":
        await task.resume()
    if not await wish_to_cancel(task, undo=undo):
        return False
    if is_live(task):
        return True
    if record.status == "paused":
        await _wake(task)
    try:
        hold = await take_lease(store, task.id, task.uid, record.agent, is_exclusive=True)
    except (LeaseHeld, InvalidTransition):
        return True  # whoever has it sees the wish
    try:
        await Aside(_end_here(task, hold))
    except BaseException:
        forget_lease(store, hold)  # the store may be away; nothing works on the task
        raise
    await task.record()
    return True


async def _wake(task: Task) -> None:
    try:
        await task.resume()
    except InvalidTransition:
        await task.record()  # somebody was quicker


async def _end_here(task: Task, hold: Hold) -> None:
    store = store_of(task)
    try:
        attempt = await prepare(store, task, hold, asyncio.get_running_loop())
        wish = await wish_of(store, task.uid)
        unknown = unknown_here(attempt) if wish is not None and wish["undo"] else []
    except BaseException as error:
        await release_lease(store, hold, COULD_NOT_BEGIN, error)
        raise
    if unknown:
        log.warning("task %s is to be cancelled by a process that knows %s", task.id, ", ".join(unknown))
        await release_lease(store, hold, f"to be cancelled by a process that knows {', '.join(unknown)}")
        return
    await end(task, hold, attempt)


# ── by whoever has the task ──────────────────────────────────────────────────────────────────────


def is_ending(attempt: Attempt, signals: Sequence[Row]) -> bool:
    """Whether the function is not to be run any more: somebody wants its task to end, or it has failed before and
    what it did was being undone."""
    if attempt.epoch == 1:
        return False  # nobody had it before us; a wish made since then will be seen soon
    return failure_of(attempt) is not None or is_wished(signals)


async def end(task: Task, hold: Hold, attempt: Attempt) -> None:
    """Undo what is to be undone and end the task; or pause it, when a person has to help."""
    store = attempt.store
    fresh = await prepare(store, task, hold, attempt.loop)
    fresh.effects = attempt.effects
    try:
        await _withdraw_questions(fresh)
        wish, failure = await wish_of(store, task.uid), failure_of(fresh)
        undone = await take_back(fresh) if wish is None or wish["undo"] else 0
    except Paused:
        await suspend(task, hold, fresh)
        return
    except BaseException as error:
        if fresh.fence.closed is None:
            await release_lease(store, hold, f"interrupted: {type(error).__name__}")
        raise
    if wish is not None:
        data = {"undo": wish["undo"], "undone": undone}
        await move(task, "cancel", hold=hold, ended="cancelled", data=data, ends=True)
    elif failure is not None:
        await fail(task, hold, fresh, codec.decode(failure))


async def _withdraw_questions(attempt: Attempt) -> None:
    """The function is not run any more, so nobody has to answer what it has asked; what is uncertain stays open."""
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
    await move(task, "fail", hold=hold, ended="failed", data=_told(shape), error=sealed)


def _told(shape: dict[str, Any]) -> dict[str, Any]:
    """The error as the history of the task keeps it: a new attempt begins without the last one's error."""
    return {name: shape[name] for name in ("message", "traceback") if shape.get(name)}


def shape_of(error: BaseException) -> dict[str, Any]:
    """An error as it is kept: for people, and to be raised again."""
    message = message_of(error)[:500] or type(error).__name__
    raised = encode_error(error, declared_here(), has_trace=False)
    return {"message": message, "type": type(error).__name__, "traceback": trace_of(error), "raised": raised}
