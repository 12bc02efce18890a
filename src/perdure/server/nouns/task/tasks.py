"""Tasks: reading one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from msgspec import structs

from perdure._durable import Outcome, call_of_task, outcome_of, situation_by_uid
from perdure._ground.bridge import Call, drive
from perdure._ground.clock import moment
from perdure._tasks import record_in_row
from perdure.errors import InvalidInput, TaskFailed, TimedOut
from perdure.server.aside import aside
from perdure.server.http import Answer, Ask, page_limit, version_tag
from perdure.server.nouns.references import address_of, glance_at, task_of
from perdure.server.shapes.cuts import brief, cut
from perdure.server.shapes.situation import TaskSituation, situation_for
from perdure.server.shapes.tasks import (
    EventRange,
    Listed,
    Reached,
    TaskEvent,
    TaskParts,
    Waiting,
    attempt_for,
    event_for,
    seen_by,
)
from perdure.server.table import Nothing, Route
from perdure.types import Attempt, TaskRecord

_LONGEST_WAIT = 60.0  # seconds: proxies cut longer ones


async def get(ask: Ask[TaskParts, None]) -> Answer:
    # One visit to a reader thread for the row, its state and its attempts: each visit costs as much as a short read.
    shown = await Call(lambda: drive(_shown(ask)))
    return Answer(_brief(shown) if ask.query.brief else shown, etag=version_tag(shown.version))


async def _shown(ask: Ask[TaskParts, None]) -> TaskRecord:
    _, row = await glance_at(ask)
    return seen_by(ask.caller, await record_in_row(ask.app.tasks, row))


def _brief(record: TaskRecord) -> TaskRecord:
    """The record without what makes it megabytes: a large state is read part by part from its checkpoint."""
    if record.latest is None:
        return record
    held = f"{address_of(record.id, record.uid)}/checkpoints/{record.latest.seq}?part=state&brief=true&path="
    latest = structs.replace(record.latest, data=None, plan=None, memory=None, partial=None, pending=())
    return structs.replace(record, state=brief(record.state, held), latest=latest)


async def situation(ask: Ask[Nothing, None]) -> Answer:
    task = await task_of(ask)
    found = await situation_by_uid(ask.app.tasks, task.uid, tells_data=ask.caller.reads_data)
    asked = await ask.app.inbox.of(task) if found.you else ()
    pauses = {item.path: item.id for item in asked if item.is_open}
    call = await call_of_task(ask.app.tasks, task.uid)
    return Answer(situation_for(ask.caller, address_of(task.id, task.uid), found, pauses, call))


async def wait(ask: Ask[Waiting, None]) -> Answer:
    task = await task_of(ask)
    if not 0 <= ask.query.timeout <= _LONGEST_WAIT:
        raise InvalidInput(f"timeout is {ask.query.timeout} s; it lies between 0 and {_LONGEST_WAIT:g} s")
    waiting = asyncio.ensure_future(
        ask.app.tasks.wait_for(task.id, status=ask.query.status, timeout=f"{ask.query.timeout:f}s")
    )
    leaving = asyncio.ensure_future(ask.server.stopping.wait())
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        record = await waiting if waiting.done() else await task.record()
    except (TaskFailed, TimedOut):
        record = await task.record()
    finally:
        waiting.cancel()
        leaving.cancel()
    return Answer(Reached(record.status == ask.query.status, seen_by(ask.caller, record)))


async def outcome(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await outcome_of(await task_of(ask)), is_large=True)


async def history(ask: Ask[Nothing, None]) -> Answer:
    _, row = await glance_at(ask)
    found = await aside(lambda: ask.app.tasks.history(row.id))
    items = [cut(seen_by(ask.caller, record), f"/v1/tasks/~{record.uid}") for record in found]
    return replace(_list(ask, items), is_large=True)


async def attempts(ask: Ask[Nothing, None]) -> Answer:
    found = (await (await task_of(ask)).record()).attempts
    return _list(ask, [attempt_for(ask.caller, attempt) for attempt in found])


async def events(ask: Ask[EventRange, None]) -> Answer:
    task = await task_of(ask)
    limit = page_limit(ask, ask.query.limit)
    found = await ask.app.tasks.events(task, after=ask.query.after, limit=limit + 1)
    more = str(found[limit - 1].number) if len(found) > limit else None
    return _list(ask, [event_for(ask.caller, event) for event in found[:limit]], more)


def _list(ask: Ask[Any, Any], items: Any, more: str | None = None) -> Answer:
    return Answer(Listed(items, moment(ask.server.clock.now_ms()), more))


ROUTES = (
    Route(
        method="GET",
        path="/v1/tasks/{task}",
        handler=get,
        does="One task as it stands.",
        scopes=("tasks:read",),
        query=TaskParts,
        answer=TaskRecord,
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/situation",
        handler=situation,
        does="Why a task is, or is not, running, and what can be done about it.",
        scopes=("tasks:read",),
        answer=TaskSituation,
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/wait",
        handler=wait,
        does="Wait, for 60 s at most, until a task has a status.",
        scopes=("tasks:read",),
        query=Waiting,
        answer=Reached,
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/outcome",
        handler=outcome,
        does="What a task that has ended came to, in the bytes in which it was recorded: for clients in Python.",
        scopes=("data:read",),
        answer=Outcome,
        statuses=(409,),
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/history",
        handler=history,
        does="Every task that ever had this id, newest first.",
        scopes=("tasks:read",),
        answer=Listed[TaskRecord],
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/attempts",
        handler=attempts,
        does="The attempts at a task: where, who, how each ended.",
        scopes=("tasks:read",),
        answer=Listed[Attempt],
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/events",
        handler=events,
        does="What happened to a task, and who did it.",
        scopes=("tasks:read",),
        query=EventRange,
        answer=Listed[TaskEvent],
    ),
)
