"""Tasks: finding them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field, structs

from perdure._durable import situations_of
from perdure._model import Counts, Facets, TaskFilter, TaskSummary
from perdure.server.paging import listed, page_limit, read_cursor, sign_cursor
from perdure.server.requests import Answer, Ask, Caller
from perdure.server.shapes.situation import ListedTask, with_situation
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Route
from perdure.types import InboxKind, Reason, Status


class Filter(Strict, frozen=True, kw_only=True):
    """Which tasks are wanted; a repeated parameter means any of its values."""

    status: tuple[Status, ...] = ()
    reason: tuple[Reason, ...] = ()
    situation: tuple[str, ...] = ()
    function: str | None = None
    version: int | None = None
    queue: str | None = None
    agent: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    parent: str | None = None
    schedule: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    changed_since: datetime | None = None
    archived: bool = False


class ListQuery(Filter, frozen=True, kw_only=True):
    sort: Literal["newest", "changed", "due"] = "newest"
    limit: int = 50
    cursor: str | None = None
    parts: tuple[Literal["pause", "children"], ...] = ()


class CountQuery(Filter, frozen=True, kw_only=True):
    parts: tuple[Literal["inbox"], ...] = ()  # counted beside the tasks


class TaskCounts(Counts, frozen=True, kw_only=True):
    """How many tasks there are; and, if asked for, how many questions wait for a person, by kind."""

    inbox: Mapping[InboxKind, int] | UnsetType = UNSET


def filter_of(query: Filter) -> TaskFilter:
    given = {name: getattr(query, name) for name in Filter.__struct_fields__}
    sets = {name: frozenset(given[name]) for name in ("status", "reason", "situation")}
    return TaskFilter(**{**given, **sets})


async def page(ask: Ask[ListQuery, None]) -> Answer:
    query = ask.query
    bound = structs.replace(query, cursor=None, limit=50)  # what a cursor belongs to
    cursor = await read_cursor(ask, "tasks", bound, query.cursor)
    found = await ask.app.tasks.page(
        filter_of(query), sort=query.sort, limit=page_limit(ask, query.limit), cursor=cursor, parts=query.parts
    )
    more = await sign_cursor(ask, "tasks", bound, found.cursor)
    items = await listed_for(ask, found.items)
    return listed(ask, items, more, approximate=found.approximate)


async def listed_for(ask: Ask[Any, Any], found: Sequence[TaskSummary]) -> list[ListedTask]:
    """Summaries with their situations, as the caller may see them. One that was deleted meanwhile is left out."""
    known = await situations_of(ask.app.tasks, found, tells_data=ask.caller.reads_data)
    return [with_situation(summary_for(ask.caller, one), known[one.uid]) for one in found if one.uid in known]


async def counts(ask: Ask[CountQuery, None]) -> Answer:
    found = await ask.app.tasks.counts(filter_of(ask.query))
    inbox = await ask.app.inbox.count() if "inbox" in ask.query.parts else UNSET
    return Answer(TaskCounts(**structs.asdict(found), inbox=inbox))


async def facets(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await ask.app.tasks.facets())


def summary_for(caller: Caller, summary: TaskSummary) -> TaskSummary:
    """The summary without what agents wrote, for a caller who may not read it."""
    if caller.reads_data:
        return summary
    progress: Any = summary.progress and structs.replace(summary.progress, cursor=None, others=())
    pause: Any = summary.pause and structs.replace(summary.pause, message="", payload={}, details={})
    return structs.replace(summary, progress=progress, pause=pause)


ROUTES = (
    Route(
        method="GET",
        path="/v1/tasks",
        handler=page,
        does="Summaries of tasks, page by page.",
        scopes=("tasks:read",),
        query=ListQuery,
        answer=Listed[TaskSummary],
    ),
    Route(
        method="GET",
        path="/v1/counts",
        handler=counts,
        does="How many tasks there are, by status and reason.",
        scopes=("tasks:read",),
        query=CountQuery,
        answer=TaskCounts,
    ),
    Route(
        method="GET",
        path="/v1/facets",
        handler=facets,
        does="What tasks can be filtered by, with how many have each.",
        scopes=("tasks:read",),
        answer=Facets,
    ),
)
