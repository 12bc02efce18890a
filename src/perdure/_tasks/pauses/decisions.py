"""Decisions of people and timers about a paused task: approve, reject, answer; with or without a durable function.

A durable function has questions, each answered once. A task without one is resumed, and the decision is merged into its
state under `approval`, `answer` or `external`. In both cases the first decision stands.
"""

from __future__ import annotations

from shlex import quote
from typing import Any

from perdure._ground.clock import moment
from perdure._model import FINISHED, Asked, InboxAnswer, Pause, answer_of, from_stored, of_pause
from perdure._store import EventRow, PauseRow, Store, TaskRow
from perdure._tasks import records
from perdure._tasks.core import TaskCore
from perdure._tasks.once import Once, once_of
from perdure._tasks.pauses import questions
from perdure._tasks.pauses.resume_write import resume_with
from perdure._tasks.task_row import current_row
from perdure.errors import Conflict, NotFound

Json = Any
# The key in a task's state for each.
PLACES = {"approval": "approval", "input": "answer"}
# The data of a decision's event beside its author.
_SHOWN = ("decision", "value", "edited", "comment")
_MOST_EVENTS = 10_000


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
        NotFound: the task has no such question.
        InvalidInput: the value does not fit, or several questions match; nothing was written.
        Conflict: another decision was first, or the task has ended.
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
        first = await _first_decision(task, row, only)
        if first is not None:
            raise Conflict(
                f"task {task.id!r} is {row.status}: no {what} of it is open{first}",
                do=f"`perdure show {quote(task.id)}` tells how it went on",
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
    """Resume a task that paused by itself, if it is still as seen in `row`, with the decision. False if it has changed.

    Raises:
        InvalidInput: it does not fit what was asked; nothing was written.
    """
    asked = of_pause(pause)
    said = {**questions.fitting(asked, value, pause.message), "by": by}
    said |= {"comment": comment} if comment else {}
    shown = {name: said[name] for name in _SHOWN if said.get(name) not in (None, "")}
    told = {"message": pause.message, "by": by, **shown}
    return await resume_with(task, row, told_state(asked, said), told, once=once)


async def _first_decision(task: TaskCore, row: TaskRow, only: str | None) -> str | None:
    """Words about the decision that was first, as far as that can be told; None: there was no question."""
    store = task._store
    if not await store.query("get_call", uid=task.uid):
        return None if row.status == "paused" else await _last_resume(task)
    decided = [
        (found.answered_at or 0, found.answer)
        for found in await store.rows(PauseRow, "read_pauses", uid=task.uid)
        if found.answer is not None and only in (None, _kind_of(store, task, found))
    ]
    if not decided:
        return None
    at, answer = max(decided, key=lambda found: found[0])
    return _words(answer_of(store.unseal(task.uid, "answer", answer), moment(at)))


async def _last_resume(task: TaskCore) -> str:
    """The same for a task without a durable function: the newest of its first events that says who decided."""
    store = task._store
    rows = await store.rows(EventRow, "read_events", uid=task.uid, after=0, limit=_MOST_EVENTS)
    events = (records.event(store, task.id, task.uid, row) for row in reversed(rows))
    last = next((one for one in events if one.kind == "resumed" and isinstance(one.data, dict)), None)
    return _words(answer_of(last.data, last.at)) if last is not None and "by" in last.data else ""


def _words(answer: InboxAnswer) -> str:
    return f"; {answer.by or 'a timer'} decided the last one at {answer.at:%Y-%m-%d %H:%M:%S} UTC"


def _kind_of(store: Store, task: TaskCore, row: PauseRow) -> str | None:
    asked = from_stored(store.unseal(task.uid, "pause", row.question).get("asked"))
    return None if asked is None else asked.kind  # a question about an effect has no kind


def told_state(asked: Asked, said: dict[str, Json]) -> dict[str, Json]:
    """The data merged into the state of a resumed task."""
    if asked.kind in ("wait", "rate_limit", "yield"):
        return {}
    return {PLACES.get(asked.kind, "external"): said}
