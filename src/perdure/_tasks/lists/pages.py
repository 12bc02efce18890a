"""Pages of tasks: the filter is checked, the rows are read, and a cursor says where the next page begins.

A text is searched among the beginnings of ids first. Those matches precede all others, in the order of their ids, so a
task with a known id is on the first page however old it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from perdure._ground.ids import check_id
from perdure._model import PARTS, SORTS, Page, Part, Sort, TaskFilter, TaskSummary
from perdure._store import Reading, Store, SummaryRow
from perdure._tasks.lists.lanes import Wanted, is_storable, wanted_by
from perdure._tasks.lists.summaries import summary, with_parts
from perdure._tasks.lists.walks import FIRST, Place, Stretch, walk, walk_ids
from perdure.errors import InvalidInput

MOST = 1000
_LETTERS: dict[Sort, str] = {"newest": "n", "changed": "c", "due": "d"}
_PREFIX = "i:"
_UID = r"([0-9a-v]{24}|~|)"
_FORMS: dict[Sort, re.Pattern[str]] = {
    "newest": re.compile(rf"n:{_UID}"),
    "changed": re.compile(rf"c:(-?[0-9]{{1,18}}|{1 << 62}):{_UID}"),
    "due": re.compile(rf"d:(-?[0-9]{{1,18}}|-{1 << 62}):{_UID}"),
}


class Start(NamedTuple):
    """The beginning of a page: an id to continue after, or a place in the page's order."""

    after_id: str | None
    place: Place


async def read_page(
    store: Store,
    filter_: TaskFilter | None,
    sort: Sort,
    limit: int,
    cursor: str | None,
    parts: Collection[Part],
    marks: Collection[str] | None = None,
) -> Page[TaskSummary]:
    """One page of tasks; with `marks`, of those that have one of them.

    Raises:
        InvalidInput: the order, the limit, a part or the cursor is not one.
    """
    filter_ = TaskFilter() if filter_ is None else filter_
    check_page(filter_, sort, limit, parts)
    start = _start(cursor, sort, filter_)
    rows, after, is_bounded = await store.look(lambda engine: _read(store, engine, filter_, sort, start, limit, marks))
    items: Sequence[TaskSummary] = [summary(store, row) for row in rows]
    if parts and items:
        items = await with_parts(store, items, parts)
    return Page(items, _cursor(after, sort) if after is not None else None, is_bounded)


async def every_row(
    store: Store, filter_: TaskFilter, after: str | None, limit: int
) -> tuple[Sequence[SummaryRow], str | None]:
    """The next tasks, newest first, however many have to be looked at; and the uid after which others follow."""
    stretch = await store.look(lambda engine: _walk_on(store, engine, filter_, after, limit))
    return stretch.rows, None if stretch.place is None else stretch.place[0]


def wanted_in(
    store: Store, engine: Reading, filter_: TaskFilter, marks: Collection[str] | None = None
) -> Wanted | None:
    """The query for a filter in this store; None if no task can match."""
    parent_uid = None
    if filter_.parent is not None:
        rows = engine.query("get_task", {"namespace": store.namespace, "id": filter_.parent}) if _is_id(filter_) else []
        if not rows:
            return None
        parent_uid = rows[0][0]
    return wanted_by(filter_, store.namespace, parent_uid, marks)


def check_page(filter_: TaskFilter, sort: object, limit: int, parts: Collection[object]) -> None:
    """Raises:
    InvalidInput: one of these is not what a page can have.
    """
    if not isinstance(filter_, TaskFilter):
        raise InvalidInput(f"the filter is {type(filter_).__name__}", do="give a perdure.types.TaskFilter, or none")
    if sort not in SORTS:
        raise InvalidInput(f"{sort!r} is not an order", do=f"choose from {', '.join(SORTS)}")
    if type(limit) is not int or not 1 <= limit <= MOST:
        raise InvalidInput(f"limit is {limit}; it lies between 1 and {MOST:,}")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is not a part of a summary", do=f"choose from {', '.join(PARTS)}")


def _is_id(filter_: TaskFilter) -> bool:
    return filter_.parent is not None and is_storable(filter_.parent)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def _walk_on(store: Store, engine: Reading, filter_: TaskFilter, after: str | None, limit: int) -> Stretch:
    wanted = wanted_in(store, engine, filter_)
    rows: list[SummaryRow] = []
    place: Place | None = FIRST["newest"] if after is None else (after,)
    while wanted is not None and place is not None and len(rows) < limit:
        stretch = walk(engine, wanted, "newest", place, limit - len(rows))
        rows += stretch.rows
        place = stretch.place
    return Stretch(rows, None if wanted is None else place)


def _read(
    store: Store,
    engine: Reading,
    filter_: TaskFilter,
    sort: Sort,
    start: Start,
    limit: int,
    marks: Collection[str] | None,
) -> tuple[Sequence[SummaryRow], Start | None, bool]:
    wanted = wanted_in(store, engine, filter_, marks)
    if wanted is None:
        return (), None, False
    first: Sequence[SummaryRow] = ()
    if start.after_id is not None:
        found = walk_ids(engine, wanted, start.after_id, limit)
        if found.place is not None:
            return found.rows, Start(found.place[0], start.place), found.is_bounded
        first = found.rows
        if len(first) == limit:
            return first, Start(None, start.place), False
    rest = walk(engine, wanted, sort, start.place, limit - len(first))
    return [*first, *rest.rows], None if rest.place is None else Start(None, rest.place), rest.is_bounded


# ── cursors ──────────────────────────────────────────────────────────────────────────────────────


def _start(cursor: str | None, sort: Sort, filter_: TaskFilter) -> Start:
    if cursor is None:
        return Start("" if filter_.text else None, FIRST[sort])
    if not isinstance(cursor, str):
        raise _no_cursor(cursor)
    if cursor.startswith(_PREFIX) and filter_.text:
        try:
            return Start(check_id(cursor.removeprefix(_PREFIX)), FIRST[sort])
        except InvalidInput:
            raise _no_cursor(cursor) from None
    form = _FORMS[sort].fullmatch(cursor)
    if form is None:
        raise _no_cursor(cursor)
    *moments, uid = form.groups()
    return Start(None, (*(int(ms) for ms in moments), uid))


def _cursor(start: Start, sort: Sort) -> str:
    if start.after_id is not None:
        return _PREFIX + start.after_id
    return ":".join([_LETTERS[sort], *map(str, start.place)])


def _no_cursor(cursor: object) -> InvalidInput:
    do = "give the cursor of the page before, with the same filter and sort"
    return InvalidInput(f"{cursor!r} is not a cursor of this list", do=do)
