"""What a durable function has done: its journal as columns, as pages, call by call; its streams and its effects."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from perdure._durable import CallState, JournalCall, JournalLine, Outline, StreamInfo, list_streams
from perdure._ground.encoding.json_values import plain
from perdure._tasks import store_of, value_at
from perdure.server.aside import aside
from perdure.server.http import Answer, Ask, listed, page_limit
from perdure.server.nouns.references import address_of, glance_at, no_such
from perdure.server.shapes.cuts import brief, cut, read_path
from perdure.server.shapes.past import Effect, effect_for
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Route

_LONGEST_TEXT = 200


class LineQuery(Strict, frozen=True, kw_only=True):
    line: int | None = None  # None: the one that the task is on


class JournalQuery(Strict, frozen=True, kw_only=True):
    line: int | None = None
    after: int = 0
    limit: int = 50
    kind: str | None = None
    state: CallState | None = None
    text: str | None = None


class EntryQuery(Strict, frozen=True, kw_only=True):
    """`path`, a JSON list of keys and positions, asks for a part of its value; `brief` for the outer levels only."""

    brief: bool = False
    path: str = "[]"


async def outline(ask: Ask[LineQuery, None]) -> Answer:
    task, _ = await glance_at(ask)
    found = await aside(lambda: ask.app.journal.outline(task, ask.query.line))
    if not ask.caller.reads_data:
        attempts = [structs.replace(one, ended=one.ended.partition(":")[0]) for one in found.attempts]
        found = structs.replace(found, attempts=attempts)
    return Answer(found, etag=f'"{found.etag}"', is_large=True)


async def page(ask: Ask[JournalQuery, None]) -> Answer:
    query = ask.query
    task, row = await glance_at(ask)
    limit = page_limit(ask, query.limit)
    found = await aside(
        lambda: ask.app.journal.page(
            task,
            query.line,
            after=query.after,
            limit=limit,
            kind=query.kind,
            state=query.state,
            text=(query.text or "")[:_LONGEST_TEXT] or None,
        )
    )
    line, base = query.line or row.line, f"{address_of(row.id, row.uid)}/journal"
    items = [cut(call, f"{base}/{line}/{call.position}") for call in found.items]
    return listed(ask, items, found.cursor)


async def entry(ask: Ask[EntryQuery, None]) -> Answer:
    task, row = await glance_at(ask)
    line, position = _number(ask, "line"), _number(ask, "position")
    path = tuple(read_path(ask.query.path))
    link = f"{address_of(row.id, row.uid)}/journal/{line}/{position}?brief=true&path="

    async def look() -> JournalCall:
        call = await ask.app.journal.entry(task, line, position)
        if not path and not ask.query.brief:
            return call
        value = value_at(plain(call.value), path, store_of(ask.app.tasks))
        return structs.replace(call, value=brief(value, link, path) if ask.query.brief else value)

    return Answer(await aside(look), is_large=True)


async def lines(ask: Ask[Nothing, None]) -> Answer:
    task, _ = await glance_at(ask)
    return listed(ask, await ask.app.journal.lines(task))


async def streams(ask: Ask[Nothing, None]) -> Answer:
    task, _ = await glance_at(ask)
    return listed(ask, await aside(lambda: list_streams(ask.app.tasks, task)))


async def effects(ask: Ask[Nothing, None]) -> Answer:
    task, _ = await glance_at(ask)
    found = await aside(lambda: ask.app.effects.of(task))
    return listed(ask, [cut(effect_for(ask.caller, one)) for one in found])


def _number(ask: Ask[Any, Any], part: str) -> int:
    given = ask.parts[part]
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise no_such(part)
    return int(given)


def _look(name: str, does: str, handler: Any, answer: Any, **more: Any) -> Route:
    settings: dict[str, Any] = {"scopes": ("data:read",), **more}
    return Route(method="GET", path=f"/v1/tasks/{{task}}/{name}", handler=handler, does=does, answer=answer, **settings)


_BARE: dict[str, Any] = {"scopes": ("tasks:read",)}
ROUTES = (
    _look(
        "journal/outline",
        "Every call of a journal as columns, for a timeline.",
        outline,
        Outline,
        query=LineQuery,
        **_BARE,
    ),
    _look(
        "journal",
        "Calls of a durable function, each on one line, page by page.",
        page,
        Listed[JournalCall],
        query=JournalQuery,
    ),
    _look("journal/{line}/{position}", "One call whole, or a part of its value.", entry, JournalCall, query=EntryQuery),
    _look("journal/lines", "The lines of a journal: a rollback begins a new one.", lines, Listed[JournalLine], **_BARE),
    _look("streams", "The streams of a durable function, without their text.", streams, Listed[StreamInfo]),
    _look("effects", "What a task has done to the world.", effects, Listed[Effect], **_BARE),
)
