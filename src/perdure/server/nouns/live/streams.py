"""Streams of server-sent events: what changes in a namespace, and what happens to one task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from perdure._tasks import Task
from perdure.errors import NotFound
from perdure.server.http import Ask, HttpProblem, Streamed, to_json
from perdure.server.live import HEADERS, MEDIA, Buffer, Feed, Lasting, Live, OpenLine, Place, TaskWatch, sse
from perdure.server.nouns.references import glance_at
from perdure.server.shapes.tasks import Strict
from perdure.server.table import Route

_MOST_TOPICS = 16
_EVENT_OF = {"events": "event", "entries": "entries", "progress": "progress"}
_OF_ALL = ("counts", "inbox", "operate", "tasks")
_OF_A_TASK = ("task", "journal", "units")


class TopicQuery(Strict, frozen=True, kw_only=True):
    """`topics` are separated by commas: `tasks`, `counts`, `inbox`, `operate`, `task:<task>`, `journal:<task>` and
    `units:<task>`."""

    topics: tuple[str, ...] = ()
    after: str | None = None  # an id of this stream; the header Last-Event-ID says the same


Part: TypeAlias = Literal["events", "entries", "progress"]


class PlaceQuery(Strict, frozen=True, kw_only=True):
    after: str | None = None  # an id of this stream, or `now`; without, it begins with the task's first event
    parts: tuple[Part, ...] = ("events", "entries", "progress")


# ── what changes ─────────────────────────────────────────────────────────────────────────────────


async def follow_changes(ask: Ask[TopicQuery, None]) -> Streamed:
    topics = await _topics(ask)
    async with AsyncExitStack() as stack:
        stack.enter_context(ask.server.part(Live).rooms.place_for(ask.caller))
        feed = ask.server.part(Live).feed_of(ask.caller.namespace, ask.app)
        listening = feed.listening(topics, after=_after(ask), caller=ask.caller)
        buffer = await stack.enter_async_context(listening)
        return Streamed(Lasting(_changes(ask, feed, buffer, topics), stack.pop_all()), MEDIA, headers=HEADERS)


async def _changes(
    ask: Ask[Any, Any], feed: Feed, buffer: Buffer, topics: dict[str, Task | None]
) -> AsyncIterator[bytes]:
    line = OpenLine(ask)
    yield line.hello({"feed": feed.id, "resumed": buffer.is_resumed}, buffer.begins_at)
    if not buffer.is_resumed:
        for message in await feed.current(topics):
            yield sse(message.event, message.data(line.caller))
    while not line.is_over:
        why, found = buffer.take()
        pieces = [sse("reset", to_json({"why": why}))] if why else []
        if why:
            ask.server.telemetry.of(line.caller.namespace).count("feed_resets", why)
        pieces += [sse(one.event, one.data(line.caller), id) for id, one in found]
        pieces.append(await line.duties())
        if sent := b"".join(pieces):
            yield sent
        if not line.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(line.seconds):
                    await buffer.woken.wait()


async def _topics(ask: Ask[TopicQuery, None]) -> dict[str, Task | None]:
    names = [name for text in ask.query.topics for name in text.split(",") if name]
    if not 1 <= len(names) <= _MOST_TOPICS:
        raise HttpProblem(
            400, "bad_request", f"a stream has 1 to {_MOST_TOPICS} topics", do="GET /v1/stream?topics=tasks"
        )
    found: dict[str, Task | None] = {}
    for name in names:
        kind, has_task, ref = name.partition(":")
        if not has_task and kind in _OF_ALL:
            found[kind] = None
        elif has_task and kind in _OF_A_TASK:
            task, _ = await glance_at(replace(ask, parts={"task": ref}))
            found[f"{kind}:{task.uid}"] = task
        else:
            known = ", ".join([*_OF_ALL, *(f"{one}:<task>" for one in _OF_A_TASK)])
            raise HttpProblem(400, "bad_request", f"there is no topic {name[:80]!r}", do=f"choose from {known}")
    return found


def _after(ask: Ask[Any, Any]) -> str | None:
    return ask.query.after or ask.headers.get("last-event-id") or None


# ── what happens to one task ─────────────────────────────────────────────────────────────────────


async def follow_task(ask: Ask[PlaceQuery, None]) -> Streamed:
    task, _ = await glance_at(ask)
    async with AsyncExitStack() as stack:
        stack.enter_context(ask.server.part(Live).rooms.place_for(ask.caller))
        feed = ask.server.part(Live).feed_of(ask.caller.namespace, ask.app)
        watch = await stack.enter_async_context(feed.watching(task))
        place = await _place(ask, watch)
        listening = feed.listening({f"progress:{task.uid}": None}, after=None, caller=ask.caller)
        buffer = await stack.enter_async_context(listening)
        return Streamed(Lasting(_happenings(ask, task, watch, buffer, place), stack.pop_all()), MEDIA, headers=HEADERS)


async def _place(ask: Ask[PlaceQuery, None], watch: TaskWatch) -> Place:
    given, end = _after(ask), await watch.end()
    place = Place() if given is None else end if given == "now" else Place.read(given)
    if place is None or place.line > end.line:
        raise HttpProblem(400, "bad_request", "this is not an id of this stream", do="give one that it has sent")
    return place


async def _happenings(
    ask: Ask[PlaceQuery, None], task: Task, watch: TaskWatch, buffer: Buffer, place: Place
) -> AsyncIterator[bytes]:
    line = OpenLine(ask)
    wanted = {_EVENT_OF[part] for part in ask.query.parts}
    yield line.hello({"task": task.uid, "resumed": place != Place()}, str(place))
    while not line.is_over:
        try:
            batch = await watch.after(place, line.seconds)
        except NotFound:
            yield sse("gone", to_json({"uid": task.uid}))
            return
        told = [(str(at), one) for at, one in batch.items] if batch else []
        told += [("", one) for _, one in buffer.take()[1]]
        place = batch.after if batch else place
        pieces = [sse(one.event, one.data(line.caller), id) for id, one in told if one.event in wanted]
        pieces.append(await line.duties())
        if sent := b"".join(pieces):
            yield sent


ROUTES = (
    Route(
        method="GET",
        path="/v1/stream",
        handler=follow_changes,
        does="What changes, as server-sent events: tasks, counts, the inbox, workers, and more of single tasks.",
        scopes=("tasks:read",),
        query=TopicQuery,
        statuses=(429,),
        streams=True,
        answers=MEDIA,
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/stream",
        handler=follow_task,
        does="What happens to one task, as server-sent events: each event and call once, also after a broken line.",
        scopes=("tasks:read",),
        query=PlaceQuery,
        statuses=(429,),
        streams=True,
        answers=MEDIA,
    ),
)
