"""Lists and counts by situation: which tasks are stuck, and how many wait for a person.

A situation depends on processes that start and stop, so it cannot be indexed. But most kinds need something that the
rows of a task say: a lease, a pause, an open question. The store leaves out tasks without such a mark, and the others
are decided one by one. A search has a bound, and reports when it reached it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from perdure._durable.inspect.situation.situations import situations_of
from perdure._model import (
    FINISHED,
    SITUATIONS,
    STATUSES,
    Page,
    Part,
    Situation,
    SituationKind,
    Sort,
    TaskFilter,
    TaskSummary,
)
from perdure._tasks import Tasks, read_task_page, store_of
from perdure.errors import InvalidInput

# So many tasks are looked at for one answer.
MOST_LOOKED_AT = 2000
_CHUNK = 200
_LIVE = frozenset(STATUSES) - FINISHED
# A task that has a situation has one of these marks. The rules are in rows.py, the marks in the store's `_looked.sql`.
_MARKS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(FINISHED, frozenset({"ended"})),
    "stopped": frozenset({"paused", "switched"}),
    "cancelling": frozenset({"cancelling"}),
    "you": frozenset({"asking"}),
    "waiting": frozenset({"paused", "later"}),
    "blocked": frozenset({"needing"}),
    "stuck": frozenset({"called", "paused", "needing"}),
    "stalled": frozenset({"held"}),
    "working": frozenset({"held"}),
    "starting": frozenset({"held", "called"}),
    "idle": frozenset({"plain"}),
}


class Told(NamedTuple):
    """A task of a list, with its situation."""

    task: TaskSummary
    situation: Situation


class Unfinished(NamedTuple):
    """The tasks that have not ended, changed last first, and how many tasks have each situation."""

    items: Sequence[Told]
    counts: Mapping[SituationKind, int]
    approximate: bool  # there are more than were looked at


async def page_with_situations(
    tasks: Tasks,
    filter_: TaskFilter,
    *,
    sort: Sort = "newest",
    limit: int = 100,
    cursor: str | None = None,
    parts: Collection[Part] = (),
    tells_data: bool = True,
) -> Page[Told]:
    """A page of tasks with their situations; `filter_.situation` can name any kind.

    Raises:
        InvalidInput: a situation, the order, the limit, a part or the cursor is not one.
    """
    wanted = filter_.situation
    rows = replace(filter_, situation=frozenset(), status=_statuses(filter_)) if wanted else filter_
    if wanted and not rows.status:
        return Page([], None)
    marks = frozenset[str]().union(*(_MARKS[kind] for kind in wanted)) if wanted else None
    store = store_of(tasks)
    found: list[Told] = []
    looked, size = 0, limit
    while True:
        page = await read_task_page(store, rows, sort, size, cursor, parts, marks)
        looked, size = looked + size, min(_CHUNK, MOST_LOOKED_AT - looked - size)
        known = await situations_of(tasks, page.items, tells_data=tells_data)
        for index, item in enumerate(page.items, 1):
            situation = known.get(item.uid)
            if situation is None or (wanted and situation.kind not in wanted):
                continue
            found.append(Told(item, situation))
            if len(found) == limit and index < len(page.items):  # the next page begins behind this one
                cut = await read_task_page(store, rows, sort, index, cursor, (), marks)
                return Page(found, cut.cursor, page.approximate)
        cursor = page.cursor
        if cursor is None or len(found) >= limit or looked >= MOST_LOOKED_AT or page.approximate:
            is_bounded = page.approximate or (cursor is not None and len(found) < limit)
            return Page(found, cursor, is_bounded)


async def unfinished(tasks: Tasks, *, tells_data: bool = True) -> Unfinished:
    """The tasks that have not ended with their situations, and how many tasks have each."""
    counts = await tasks.counts()
    items: list[Told] = []
    cursor: str | None = None
    while len(items) < MOST_LOOKED_AT:
        page = await tasks.page(TaskFilter(status=_LIVE), sort="changed", limit=_CHUNK, cursor=cursor)
        known = await situations_of(tasks, page.items, tells_data=tells_data)
        items += [Told(item, known[item.uid]) for item in page.items if item.uid in known]
        cursor = page.cursor
        if cursor is None:
            break
    found = Counter[SituationKind](one.situation.kind for one in items)
    ended: dict[str, int] = {kind: counts.status[kind] for kind in FINISHED}
    by_kind = {kind: ended.get(kind, found[kind]) for kind in SITUATIONS}
    return Unfinished(items, by_kind, cursor is not None)


def _statuses(filter_: TaskFilter) -> frozenset[str]:
    """The statuses that a task with one of these situations can have."""
    unknown = filter_.situation - set(SITUATIONS)
    if unknown:
        raise InvalidInput(f"{min(unknown)!r} is not a situation", do=f"choose from {', '.join(SITUATIONS)}")
    found: frozenset[str] = filter_.situation & FINISHED
    if filter_.situation - FINISHED:
        found |= _LIVE
    return found & filter_.status if filter_.status else found
