"""The changes in a namespace, for clients that follow it.

Each change has a place: its moment and the task's uid. A watermark is the place of the last change that was read, so no
change is lost when several happen in one millisecond. Moments come from the writers' clocks and are taken before the
commit: a change can become visible after one with a later moment was read. So a client that follows a store reads again
from a little before its last watermark (two seconds are enough where the clocks agree) and drops the changes it has
seen, by uid and etag.
"""

from __future__ import annotations

import re
from datetime import datetime

from perdure._ground.clock import to_ms
from perdure._model import Changes
from perdure._store import Reading, Store, SummaryRow
from perdure._tasks.lists.lanes import LAST_UID
from perdure._tasks.lists.pages import MOST
from perdure._tasks.lists.summaries import summary
from perdure.errors import InvalidInput

_FORM = re.compile(r"(-?[0-9]{1,18}):([0-9a-v]{24}|~|)")


async def read_changes(store: Store, after: str | datetime | None, limit: int) -> Changes:
    """Changes after a watermark or a moment, the earliest first; None begins with the first task."""
    if type(limit) is not int or not 1 <= limit <= MOST:
        raise InvalidInput(f"limit is {limit}; it lies between 1 and {MOST:,}")
    at, uid = _place(after)

    def read(engine: Reading) -> tuple[list[SummaryRow], list[tuple[int, str]]]:
        params = {"namespace": store.namespace, "at": at, "uid": uid, "limit": limit + 1}
        rows = [SummaryRow(*row) for row in engine.query("changed_tasks", params)]
        rows.sort(key=_place_of)
        return rows, [(row[0], row[1]) for row in engine.query("deleted_tasks", params)]

    rows, deleted = await store.look(read)
    places = sorted([*(_place_of(row) for row in rows), *deleted])
    last = places[:limit][-1] if places else (at, uid)
    return Changes(
        items=[summary(store, row) for row in rows if _place_of(row) <= last],
        gone=[place[1] for place in deleted if place <= last],
        watermark=f"{last[0]}:{last[1]}",
        more=len(places) > limit,
    )


def _place_of(row: SummaryRow) -> tuple[int, str]:
    return row.updated_at, row.uid


def _place(after: str | datetime | None) -> tuple[int, str]:
    """The place after which changes are wanted; all of a moment's own are."""
    if after is None:
        return 0, ""
    if isinstance(after, datetime):
        if after.tzinfo is None:
            raise InvalidInput("after is a moment with a time zone", do="give datetime.now(UTC), say")
        return to_ms(after) - 1, LAST_UID
    form = _FORM.fullmatch(str(after))
    if form is None:
        raise InvalidInput(f"{after!r} is not a watermark", do="give the watermark of the changes before, or a moment")
    return int(form[1]), form[2]
