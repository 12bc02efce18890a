"""What people and timers say to a paused task: approve, reject, answer; whether it is a durable function or not.

A durable function has questions, each answered once. A task without one is resumed, and what was said is merged
into its state: under `approval`, `answer` or `external`. Either way the first decision stands.
"""

from __future__ import annotations

from typing import Any

from perdure._model import FINISHED, Asked, Pause, from_stored, of_pause
from perdure._store import PauseRow, TaskRow
from perdure._tasks import records
from perdure._tasks.core import TaskCore
from perdure._tasks.once import Once, once_of
from perdure._tasks.pauses import questions
from perdure._tasks.pauses.resume_write import resume_with
from perdure._tasks.task_row import current_row
from perdure.errors import Conflict, NotFound

Json = Any
# Where in a task's state it is told.
PLACES = {"approval": "approval", "input": "answer"}
# What the event of a decision tells beside who made it.
_SHOWN = ("decision", "value", "edited", "comment")


async def say(
    task: TaskCore,
    value: Json,
    *,
    by: str,
    key: str | None = None,
    only: str | None = None,
    once: str | None = None,
) -> None:
    """Answer what the task waits for, unless that was done `once` before. `only` says which kind of question is meant.

    Raises:
        NotFound: nothing like it is asked.
        InvalidInput: it does not fit, or nothing says which of several is meant; nothing was written.
        Conflict: somebody was quicker, or the task has ended.
    """
    store = task._store
    row = await current_row(store, task.id, task.uid)
    asked = await questions.questions_of(store, task.id, task.uid, has_ended=row.status in FINISHED)
    request = once_of(once, "answer", value, by, key, only)
    if await task._has_done(request):
        return
    if only is not None:
        asked = [one for one in asked if one.asked is not None and one.asked.kind == only]
    try:
        if not asked and key is None:
            await _say_to_pause(task, row, value, by=by, only=only, once=request)
            return
        question = questions.choose(asked, task.id, store, key=key)
        await questions.answer_question(store, question, value, by=by, once=request)
    except Conflict:
        if not await task._has_done(request):
            raise


async def _say_to_pause(
    task: TaskCore, row: TaskRow, value: Json, *, by: str, only: str | None, once: Once | None
) -> None:
    store = task._store
    pause = (await records.load(store, row))[0].pause
    asked = of_pause(pause) if pause is not None and row.status == "paused" else None
    if pause is None or asked is None or (only is not None and asked.kind != only) or "diverged" in pause.details:
        what = "approval" if only == "approval" else "question"
        if await _was_decided(task, row, only):
            raise Conflict(
                f"task {task.id!r} is {row.status}: no {what} of it is open",
                do=f"`perdure show {task.id}` tells how it went on",
            )
        raise NotFound(f"open {what}", task.id, store.place, do=f"`perdure show {task.id}` tells what it waits for")
    if not await end_pause(task, row, pause, value, by=by, once=once):
        raise Conflict(
            f"task {task.id!r} has gone on meanwhile",
            kept="the first decision",
            do=f"`perdure show {task.id}` tells where the task stands",
        )


async def end_pause(
    task: TaskCore, row: TaskRow, pause: Pause, value: Json, *, by: str, comment: str = "", once: Once | None = None
) -> bool:
    """Resume a task that is paused by itself, as it was seen in `row`, with what was said; False when it has changed.

    Raises:
        InvalidInput: it does not fit what was asked; nothing was written.
    """
    asked = of_pause(pause)
    said = {**questions.fitting(asked, value, pause.message), "by": by}
    said |= {"comment": comment} if comment else {}
    shown = {name: said[name] for name in _SHOWN if said.get(name) not in (None, "")}
    told = {"message": pause.message, "by": by, **shown}
    return await resume_with(task, row, told_state(asked, said), told, once=once)


async def _was_decided(task: TaskCore, row: TaskRow, only: str | None) -> bool:
    """Whether somebody was quicker, so far as can be told; else nothing was ever asked."""
    store = task._store
    if not await store.query("get_call", uid=task.uid):
        return row.status != "paused"
    for found in await store.rows(PauseRow, "read_pauses", uid=task.uid):
        asked = from_stored(store.unseal(task.uid, "pause", found.question).get("asked"))
        kind = None if asked is None else asked.kind  # what is asked about an effect is of no kind
        if found.answer is not None and only in (None, kind):
            return True
    return False


def told_state(asked: Asked, said: dict[str, Json]) -> dict[str, Json]:
    """What is merged into the state of a task that is resumed."""
    if asked.kind in ("wait", "rate_limit", "yield"):
        return {}
    return {PLACES.get(asked.kind, "external"): said}
