"""The two ends of an attempt that every kind of it shares: reading what was recorded, and waiting without a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple

from perdure._durable.attempt import Attempt
from perdure._durable.journal import length_of, opened, require_line, without_failed
from perdure._durable.pauses import Open
from perdure._durable.progress import begin_at, resume_point
from perdure._ground.bridge import Call
from perdure._model import Pause, make_pause
from perdure._store import Engine, Row, Store, TaskRow
from perdure._tasks import Hold, Task, event_of, forget_lease, release_lease


class Past(NamedTuple):
    """What is on record of a task when an attempt begins."""

    call: Row
    line: int
    journal: Sequence[Row]
    pauses: Sequence[Row]
    signals: Sequence[Row]


def read_past(store: Store, uid: str) -> Call[Past]:
    """All of it in one go: a task that goes on after a pause is mostly the waiting for its reads."""

    def read(engine: Engine) -> Past:
        query, which = engine.query, {"uid": uid}
        line = query("get_task_by_uid", which)[0][6]
        call = query("get_call", which)  # it says how long the journal has to be
        journal = query("read_journal", {"uid": uid, "line": line})
        pauses, signals = query("read_pauses", which), query("read_signals", which)
        return Past(call[0] if call else (), line, journal, pauses, signals)

    return store.read(read)


class Found(NamedTuple):
    """A task's row, and its past, unless the journals that were read with it are too long."""

    row: TaskRow
    past: Past | None


# So many entries are read of many tasks together; whose journal is not among them reads it by itself.
_MOST_TOGETHER = 5_000


def read_pasts(store: Store, uids: Sequence[str]) -> Call[dict[str, Found]]:
    """The pasts of many tasks that go on at the same moment, by as few queries as that of one takes."""

    def read(engine: Engine) -> dict[str, Found]:
        query, which = engine.query, {"uids": json.dumps(uids)}
        rows = {row[0]: TaskRow(*row) for row in query("tasks_of", which)}
        calls = {row[0]: row[1:] for row in query("calls_of", which)}  # they say how long the journals have to be
        entries = query("journals_of", {**which, "limit": _MOST_TOGETHER})
        journals = _by_task(entries)
        whole = rows.keys() & calls.keys()
        if len(entries) == _MOST_TOGETHER:  # of the last one some may be missing, and of those behind it all
            whole = (whole & journals.keys()) - {entries[-1][0]}
        pauses, signals = _by_task(query("pauses_of", which)), _by_task(query("signals_of", which))
        found = {}
        for uid, row in rows.items():
            past = None
            if uid in whole:
                rest = [each.get(uid, []) for each in (journals, pauses, signals)]
                past = Past(calls[uid], row.line, *rest)
            found[uid] = Found(row, past)
        return found

    return store.read(read)


def _by_task(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rest of each row, by the uid that it begins with."""
    found: dict[str, list[Row]] = {}
    for uid, *rest in rows:
        found.setdefault(uid, []).append(tuple(rest))
    return found


async def prepare(
    store: Store, task: Task, hold: Hold, loop: asyncio.AbstractEventLoop, past: Past | None = None
) -> Attempt:
    """An attempt that knows its journal and how its questions were answered."""
    past = past or await read_past(store, task.uid)
    line, pauses = past.line, past.pauses
    least = length_of(past.call, line) if past.call else 0
    if past.call:
        await require_line(store, task.uid, past.call, line, task.id)
    entries = await without_failed(store, task.uid, opened(store, task.uid, past.journal, task.id, least))
    point = await resume_point(store, task.uid, entries)
    answers = {row[0]: store.unseal(task.uid, "answer", row[6]) for row in pauses if row[6] is not None}
    attempt = Attempt(store, hold.fence, line, entries, answers, loop, point)
    for path, _, _, question, asked_at, due_at, answer, *_ in pauses:
        if answer is None:
            attempt.asked[path] = Open(store.unseal(task.uid, "pause", question), asked_at, due_at)
    if point is not None:
        begin_at(attempt, point)
    return attempt


async def suspend(task: Task, hold: Hold, attempt: Attempt) -> None:
    """The task waits for its open questions, unless one was answered while the attempt was unwound."""
    store = attempt.store
    await attempt.flush()
    reason, question, _ = next(iter(attempt.questions.values()))
    now = store.clock.now_ms()
    details = question.get("details") or {}
    pause = make_pause(reason, str(question["question"]), details, now, json.loads(store.presence.author()))
    params = {
        **event_of(task, "paused", {"reason": reason, "message": pause.message}),
        "pause": store.seal(task.uid, "pause", pause, Pause),
        "pause_reason": reason,
        "due_at": None,  # each question has its own
        "paths": json.dumps(list(attempt.questions)),
    }
    try:
        row = await store.verb("suspend", task.uid, params, key=task.id, fence=hold.fence)
    except asyncio.CancelledError:
        # It is queued, and may be done by now: then there is nothing left to give back but what we remember.
        await release_lease(store, hold, "interrupted")
        raise
    if row is None:
        await release_lease(store, hold, "answered while it was unwound")
    else:
        forget_lease(store, hold)
