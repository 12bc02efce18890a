"""Tasks: finding them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, field, structs

from perdure._durable import Unfinished, page_with_situations, situations_of
from perdure._model import Facets, TaskFilter, TaskSummary
from perdure.errors import InvalidInput
from perdure.server.http import Answer, Ask, Caller, listed, page_limit, read_cursor, sign_cursor
from perdure.server.overview import Overviews
from perdure.server.shapes.counts import TaskCounts
from perdure.server.shapes.situation import ListedTask, with_situation
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Route
from perdure.types import Reason, Status


class Filter(Strict, frozen=True, kw_only=True):
    """The filter of a list; a repeated parameter means any of its values."""

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
    hidden: bool = False


class ListQuery(Filter, frozen=True, kw_only=True):
    sort: Literal["newest", "changed", "due"] = "newest"
    limit: int = 50
    cursor: str | None = None
    parts: tuple[Literal["pause", "children"], ...] = ()


class CountQuery(Filter, frozen=True, kw_only=True):
    parts: tuple[Literal["situation", "inbox"], ...] = ()  # counted beside the tasks; by situation only of all tasks


def filter_of(query: Filter) -> TaskFilter:
    given = {name: getattr(query, name) for name in Filter.__struct_fields__}
    sets = {name: frozenset(given[name]) for name in ("status", "reason", "situation")}
    return TaskFilter(**{**given, **sets})


async def page(ask: Ask[ListQuery, None]) -> Answer:
    query = ask.query
    bound = structs.replace(query, cursor=None, limit=50)  # what a cursor belongs to
    cursor = await read_cursor(ask, "tasks", bound, query.cursor)
    found = await page_with_situations(
        ask.app.tasks,
        filter_of(query),
        sort=query.sort,
        limit=page_limit(ask, query.limit),
        cursor=cursor,
        parts=query.parts,
        tells_data=ask.caller.reads_data,
    )
    more = await sign_cursor(ask, "tasks", bound, found.cursor)
    items = [with_situation(summary_for(ask.caller, task), situation) for task, situation in found.items]
    return listed(ask, items, more, approximate=found.approximate)


async def listed_for(ask: Ask[Any, Any], found: Sequence[TaskSummary]) -> list[ListedTask]:
    """Summaries with their situations, as the caller may see them. One that was deleted meanwhile is left out."""
    known = await situations_of(ask.app.tasks, found, tells_data=ask.caller.reads_data)
    return [with_situation(summary_for(ask.caller, one), known[one.uid]) for one in found if one.uid in known]


async def counts(ask: Ask[CountQuery, None]) -> Answer:
    filter_ = filter_of(ask.query)
    if "situation" not in ask.query.parts:
        found = await ask.app.tasks.counts(filter_)
        inbox = await ask.app.inbox.count() if "inbox" in ask.query.parts else UNSET
        return Answer(TaskCounts(**structs.asdict(found), inbox=inbox))
    if not filter_.is_empty:
        raise InvalidInput("counts by situation are of all tasks", do="leave out the filter, or parts=situation")
    overview = await ask.server.part(Overviews).of(ask.app, tells_data=ask.caller.reads_data)
    return Answer(await counts_now(ask, overview))


async def counts_now(ask: Ask[Any, Any], overview: Unfinished) -> TaskCounts:
    """The numbers of tasks, by status, reason and every other property that a list can be filtered by."""
    told = structs.asdict(await ask.app.tasks.counts())
    told["approximate"] = told["approximate"] or overview.approximate
    return TaskCounts(**told, situation=overview.counts, inbox=await ask.app.inbox.count())


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
        answer=Listed[ListedTask],
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
