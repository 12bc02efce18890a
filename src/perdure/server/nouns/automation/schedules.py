"""Schedules: functions that start by the clock; and when a cron expression comes round."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from perdure._durable import Schedule
from perdure._ground.clock import moment
from perdure._ground.cron import next_cron
from perdure._model import TaskFilter, check_cron
from perdure.errors import InvalidInput, StaleVersion
from perdure.server.http import Answer, Ask, HttpProblem, listed, version_tag
from perdure.server.nouns.references import address_of, no_such
from perdure.server.shapes.automation import (
    CronQuestion,
    NewSchedule,
    Run,
    ScheduleBody,
    ScheduleShown,
    Ticks,
    schedule_for,
)
from perdure.server.shapes.tasks import Listed, seen_by
from perdure.server.table import Nothing, Route
from perdure.types import TaskRecord

_MOST_TICKS, _LONGEST_CRON = 100, 200
_LONGEST_EVERY = 100 * 365 * 24 * 3600.0  # seconds


async def listing(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, [schedule_for(ask.caller, one) for one in await ask.app.schedules.list()])


async def make(ask: Ask[Nothing, NewSchedule]) -> Answer:
    new = ask.body
    try:
        made = await _store(ask, new.id, new, 0)
    except StaleVersion:
        raise HttpProblem(
            409, "already_exists", f"there is a schedule {new.id!r} already", do="choose another id, or PUT it"
        ) from None
    return _shown(ask, made, 201)


async def get(ask: Ask[Nothing, None]) -> Answer:
    found = await _existing(ask)
    runs = await ask.app.tasks.page(TaskFilter(schedule=found.id), limit=20)
    shown = schedule_for(
        ask.caller,
        found,
        next_ticks=await asyncio.to_thread(_next_ticks, found),
        last_runs=[Run(one.id, one.uid, one.status, one.created_at, one.finished_at) for one in runs.items],
    )
    return Answer(shown, etag=version_tag(found.version))


async def put(ask: Ask[Nothing, ScheduleBody]) -> Answer:
    await _existing(ask)
    return _shown(ask, await _store(ask, ask.parts["id"], ask.body, ask.match), 200)


async def remove(ask: Ask[Nothing, None]) -> Answer:
    await _existing(ask)
    await ask.app.schedules.remove(ask.parts["id"], if_version=ask.match)
    return Answer(None, 204)


async def pause(ask: Ask[Nothing, None]) -> Answer:
    return _shown(ask, await ask.app.schedules.pause((await _existing(ask)).id), 200)


async def resume(ask: Ask[Nothing, None]) -> Answer:
    return _shown(ask, await ask.app.schedules.resume((await _existing(ask)).id), 200)


async def run(ask: Ask[Nothing, None]) -> Answer:
    id = await ask.app.schedules.run_now((await _existing(ask)).id, key=ask.once)
    record = await (await ask.app.tasks.handle(id)).record()
    where = {"Location": address_of(record.id, record.uid)}
    return Answer(seen_by(ask.caller, record), 201, version_tag(record.version), where)


async def cron(ask: Ask[Nothing, CronQuestion]) -> Answer:
    asked = ask.body
    if not 1 <= asked.count <= _MOST_TICKS or len(asked.cron) > _LONGEST_CRON:
        raise InvalidInput(f"count is {asked.count}; it lies between 1 and {_MOST_TICKS}")
    after = asked.after or moment(ask.server.clock.now_ms())
    if after.tzinfo is None:
        raise InvalidInput("after has no time zone", do="write 2026-11-17T12:00:00Z")
    return Answer(await asyncio.to_thread(_ticks, asked, after))


def _ticks(asked: CronQuestion, after: datetime) -> Ticks:
    check_cron(asked.cron, asked.tz)
    items: list[datetime] = []
    while len(items) < asked.count and (tick := next_cron(asked.cron, asked.tz, after)) is not None:
        items.append(tick)
        after = tick
    return Ticks(items, [tick.astimezone(ZoneInfo(asked.tz)).isoformat() for tick in items])


def _next_ticks(found: Schedule) -> list[datetime]:
    ticks = [] if found.next_at is None else [found.next_at]
    while ticks and len(ticks) < 5:
        after = ticks[-1] + found.every if found.every is not None else next_cron(found.cron, found.tz, ticks[-1])
        if after is None:
            break
        ticks.append(after)
    return ticks


async def _store(ask: Ask[Any, Any], id: str, body: ScheduleBody, version: int | None) -> Schedule:
    if body.every is not None and not 0 < body.every <= _LONGEST_EVERY:
        raise InvalidInput(f"every is {body.every}; it is a number of seconds, at least 1")
    if len(body.cron) > _LONGEST_CRON:
        raise InvalidInput(f"cron has {len(body.cron)} characters; at most {_LONGEST_CRON} are allowed")
    return await ask.app.schedules.add(
        id,
        body.function,
        body.arguments,
        version=body.version,
        cron=body.cron,
        tz=body.tz,
        every=None if body.every is None else timedelta(seconds=body.every),
        missed=body.missed,
        overlap=body.overlap,
        queue=body.queue,
        priority=body.priority,
        if_version=version,
    )


async def _existing(ask: Ask[Any, Any]) -> Schedule:
    found = await ask.app.schedules.get(ask.parts["id"])
    if found is None:
        raise no_such("schedule")
    return found


def _shown(ask: Ask[Any, Any], found: Schedule, status: int) -> Answer:
    return Answer(schedule_for(ask.caller, found), status, version_tag(found.version))


def _route(method: Any, path: str, does: str, handler: Any, **more: Any) -> Route:
    scope = "tasks:read" if method == "GET" else "schedules:write"
    settings: dict[str, Any] = {"scopes": (scope,), "answer": ScheduleShown, **more}
    return Route(method=method, path=f"/v1/schedules{path}", handler=handler, does=does, **settings)


ROUTES = (
    _route("GET", "", "The schedules.", listing, answer=Listed[ScheduleShown]),
    _route("POST", "", "Make a schedule.", make, body=NewSchedule, status=201, once="may"),
    _route("GET", "/{id}", "One schedule, with its next ticks and its last runs.", get),
    _route("PUT", "/{id}", "Change a schedule. It keeps its position.", put, body=ScheduleBody, match="must",
           once="may"),
    _route("DELETE", "/{id}", "Remove a schedule. The tasks it has started stay.", remove, answer=None, status=204,
           match="must", once="may"),
    _route("POST", "/{id}/pause", "Start nothing by a schedule until it is resumed.", pause, once="may"),
    _route("POST", "/{id}/resume", "Go on with a schedule's next tick.", resume, once="may"),
    _route("POST", "/{id}/run", "Start an extra run now.", run, answer=TaskRecord, status=201, once="must"),
    Route(
        method="POST",
        path="/v1/cron",
        handler=cron,
        does="When a cron expression comes round, across changes of the clock.",
        scopes=("tasks:read",),
        body=CronQuestion,
        answer=Ticks,
    ),
)  # fmt: skip
