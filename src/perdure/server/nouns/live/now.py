"""Now: everything the first page of a dashboard shows, in one answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from perdure._durable import Told, Unfinished
from perdure._ground.clock import moment, to_ms
from perdure._model import FINISHED, SituationKind, TaskFilter
from perdure._store import RecentEvent
from perdure._tasks import store_of
from perdure.errors import KeyMissing, RecordDamaged
from perdure.server.http import Answer, Ask
from perdure.server.nouns.references import address_of
from perdure.server.nouns.task.task_list import counts_now, listed_for, summary_for
from perdure.server.overview import Overviews
from perdure.server.shapes.inbox import pause_for
from perdure.server.shapes.now import (
    Health,
    Now,
    NowQuery,
    RestoredTask,
    StuckGroup,
    WorkersNow,
    group_of,
    health_of,
    restored_of,
)
from perdure.server.shapes.situation import ListedTask, way_for, with_situation
from perdure.server.table import Route

_MOST = 10  # of each list
# Tasks, and events of each, that are searched for restores.
_LOOKED_AT, _EVENTS_LOOKED_AT = 100, 200
_LONGEST = timedelta(hours=24)
# A worker that comes takes these on.
_UNATTENDED = ("no_worker",)


async def now(ask: Ask[NowQuery, None]) -> Answer:
    at = moment(ask.server.clock.now_ms())
    since = max(ask.query.since or at - _LONGEST, at - _LONGEST)
    found = await ask.server.part(Overviews).of(ask.app, tells_data=ask.caller.reads_data)
    asked = await ask.app.inbox.page(limit=_MOST)
    return Answer(
        Now(
            at=at,
            counts=await counts_now(ask, found),
            inbox=[pause_for(ask.caller, item) for item in asked.items],
            stuck=_stuck(ask, found),
            working=_working(ask, found),
            next=_next(ask, found),
            recent=await _recent(ask, since),
            restored=await _restored(ask, since),
            since=since,
            health=await _health(ask, found),
        )
    )


def _of(found: Unfinished, *kinds: SituationKind) -> list[Told]:
    return [one for one in found.items if one.situation.kind in kinds]


def _listed(ask: Ask[Any, Any], items: Sequence[Told]) -> list[ListedTask]:
    return [_one(ask, one) for one in items[:_MOST]]


def _one(ask: Ask[Any, Any], one: Told) -> ListedTask:
    return with_situation(summary_for(ask.caller, one.task), one.situation)


def _stuck(ask: Ask[Any, Any], found: Unfinished) -> list[StuckGroup]:
    groups: dict[tuple[str, str], list[Told]] = {}
    for one in sorted(_of(found, "stuck"), key=_since, reverse=True):
        groups.setdefault((one.situation.cause, one.situation.say), []).append(one)
    shown = []
    for same in list(groups.values())[:_MOST]:
        task, situation = same[0]
        address = address_of(task.id, task.uid)
        ways = [way_for(ask.caller, address, way) for way in situation.ways]
        shown.append(group_of(_one(ask, same[0]), situation.cause, len(same), ways))
    return shown


def _since(one: Told) -> datetime:
    return one.situation.since or one.task.updated_at


def _working(ask: Ask[Any, Any], found: Unfinished) -> list[ListedTask]:
    return _listed(ask, sorted(_of(found, "working", "stalled"), key=_last_sign))


def _last_sign(one: Told) -> datetime:
    """When it last showed progress."""
    return max(_since(one), one.task.progress.at) if one.task.progress is not None else _since(one)


def _next(ask: Ask[Any, Any], found: Unfinished) -> list[ListedTask]:
    due = [(one.situation.until, one.task.uid, one) for one in _of(found, "waiting") if one.situation.until is not None]
    return _listed(ask, [one for *_, one in sorted(due, key=lambda place: place[:2])])


async def _recent(ask: Ask[Any, Any], since: datetime) -> list[ListedTask]:
    filter_ = TaskFilter(status=FINISHED, changed_since=since)
    return await listed_for(ask, (await ask.app.tasks.page(filter_, sort="changed", limit=_MOST)).items)


async def _restored(ask: Ask[Any, Any], since: datetime) -> list[RestoredTask]:
    """Of the tasks that have changed last, those that came back on another process."""
    store = store_of(ask.app.tasks)
    tasks = (await ask.app.tasks.page(TaskFilter(changed_since=since), sort="changed", limit=_LOOKED_AT)).items
    asked = {"uids": json.dumps([one.uid for one in tasks]), "kinds": '["restored"]', "look": _EVENTS_LOOKED_AT}
    events = await store.rows(RecentEvent, "recent_events_of", **asked)
    newest = {event.task_uid: event for event in events if event.at >= to_ms(since)}
    listed = {one.uid: one for one in await listed_for(ask, [one for one in tasks if one.uid in newest])}
    found = []
    for event in sorted(newest.values(), key=lambda event: event.at, reverse=True)[:_MOST]:
        with suppress(KeyMissing, RecordDamaged):
            told = store.unseal(event.task_uid, "event", event.body)
            found.append(restored_of(listed[event.task_uid], moment(event.at), told, tells_data=ask.caller.reads_data))
    return found


async def _health(ask: Ask[Any, Any], found: Unfinished) -> Health:
    states = [one.state for one in await ask.app.workers.list() if one.is_worker]
    workers = WorkersNow(alive=states.count("alive"), silent=states.count("silent"), dead=states.count("dead"))
    waits = [one.situation for one in found.items]
    unattended = sum(one.unattended or one.cause in _UNATTENDED for one in waits)
    return health_of(workers, unattended, len(_of(found, "working", "stalled")))


ROUTES = (
    Route(
        method="GET",
        path="/v1/now",
        handler=now,
        does="What needs a person, is stuck, works, goes on by itself or has ended, in one answer.",
        scopes=("tasks:read",),
        query=NowQuery,
        answer=Now,
    ),
)
