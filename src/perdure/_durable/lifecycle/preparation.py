"""Begin an attempt from what the store has of its task, and end one that waits for answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from perdure._durable.attempt import Attempt
from perdure._durable.journal import length_of, opened, require_line, without_failed
from perdure._durable.pauses import Open
from perdure._durable.progress import begin_at, resume_point
from perdure._ground.bridge import Call
from perdure._model import Pause, make_pause
from perdure._store import CallRow, Engine, PauseRow, Row, SignalRow, Store, TaskRow
from perdure._tasks import Hold, Task, event_of, forget_lease, release_lease

T = TypeVar("T")


class Past(NamedTuple):
    """The stored state of a task when an attempt begins."""

    call: CallRow | None  # None for a task without a durable function
    line: int
    journal: Sequence[Row]
    pauses: Sequence[PauseRow]
    signals: Sequence[SignalRow]


def read_past(store: Store, uid: str) -> Call[Past]:
    """All of it in one trip: a task that resumes spends most of its time waiting for these reads."""

    def read(engine: Engine) -> Past:
        query, which = engine.query, {"uid": uid}
        line = TaskRow(*query("get_task_by_uid", which)[0]).line
        call = query("get_call", which)  # before the journal: it says how long that must be
        journal = query("read_journal", {"uid": uid, "line": line})
        pauses = [PauseRow(*row) for row in query("read_pauses", which)]
        signals = [SignalRow(*row) for row in query("read_signals", which)]
        return Past(CallRow(*call[0]) if call else None, line, journal, pauses, signals)

    return store.read(read)


class TaskPast(NamedTuple):
    """A task's row, and its past; None if too many entries were read together."""

    row: TaskRow
    past: Past | None


# The most entries to read for many tasks together; a task beyond that reads its journal by itself.
_MOST_TOGETHER = 5_000


def read_pasts(store: Store, uids: Sequence[str]) -> Call[dict[str, TaskPast]]:
    """The pasts of many tasks that resume at the same moment, with as few queries as for one."""

    def read(engine: Engine) -> dict[str, TaskPast]:
        query, which = engine.query, {"uids": json.dumps(uids)}
        rows = {row.uid: row for row in (TaskRow(*row) for row in query("tasks_of", which))}
        calls = {
            uid: CallRow(*call) for uid, *call in query("calls_of", which)
        }  # before the journals: says their lengths
        entries = query("journals_of", {**which, "limit": _MOST_TOGETHER})
        journals = _by_task(_as_it_is, entries)
        whole = rows.keys() & calls.keys()
        if len(entries) == _MOST_TOGETHER:  # the last journal can be incomplete, and those after it are missing
            whole = (whole & journals.keys()) - {entries[-1][0]}
        pauses = _by_task(PauseRow, query("pauses_of", which))
        signals = _by_task(SignalRow, query("signals_of", which))
        found = {}
        for uid, row in rows.items():
            past = None
            if uid in whole:
                rest = pauses.get(uid, []), signals.get(uid, [])
                past = Past(calls[uid], row.line, journals.get(uid, []), *rest)
            found[uid] = TaskPast(row, past)
        return found

    return store.read(read)


def _as_it_is(*columns: Any) -> Row:
    return columns


def _by_task(kind: Callable[..., T], rows: Sequence[Row]) -> dict[str, list[T]]:
    """The rest of each row, as a row of this kind, by the uid in its first column."""
    found: dict[str, list[T]] = {}
    for uid, *rest in rows:
        found.setdefault(uid, []).append(kind(*rest))
    return found


async def prepare(
    store: Store, task: Task, hold: Hold, loop: asyncio.AbstractEventLoop, past: Past | None = None
) -> Attempt:
    """An attempt that knows the journal and the answers to its questions."""
    past = past or await read_past(store, task.uid)
    line, pauses = past.line, past.pauses
    least = length_of(past.call, line) if past.call else 0
    if past.call:
        await require_line(store, task.uid, past.call, line, task.id)
    entries = await without_failed(store, task.uid, opened(store, task.uid, past.journal, task.id, least))
    point = await resume_point(store, task.uid, entries)
    answers = {one.path: store.unseal(task.uid, "answer", one.answer) for one in pauses if one.answer is not None}
    attempt = Attempt(store, hold.fence, line, entries, answers, loop, point)
    for one in pauses:
        if one.answer is None:
            attempt.unwinding.asked[one.path] = Open(
                store.unseal(task.uid, "pause", one.question), one.asked_at, one.due_at
            )
    if point is not None:
        begin_at(attempt, point)
    return attempt


async def suspend(task: Task, hold: Hold, attempt: Attempt) -> None:
    """Pause the task until its open questions are answered, unless one was answered while the attempt unwound."""
    store = attempt.store
    await attempt.flush()
    reason, question, _ = next(iter(attempt.unwinding.questions.values()))
    now = store.clock.now_ms()
    details = question.get("details") or {}
    pause = make_pause(reason, str(question["question"]), details, now, json.loads(store.presence.author()))
    params = {
        **event_of(task, "paused", {"reason": reason, "message": pause.message}),
        "pause": store.seal(task.uid, "pause", pause, Pause),
        "pause_reason": reason,
        "due_at": None,  # each question has its own due time
        "paths": json.dumps(list(attempt.unwinding.questions)),
    }
    try:
        row = await store.verb("suspend", task.uid, params, key=task.id, fence=hold.fence)
    except asyncio.CancelledError:
        # The write is queued and may be done by now: then only our own record of the lease must be cleared.
        await release_lease(store, hold, "interrupted")
        raise
    if row is None:
        await release_lease(store, hold, "answered while it was unwound")
    else:
        forget_lease(store, hold)
