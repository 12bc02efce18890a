"""Read the rows of one page: walk along an index in the order of the page, and stop when it is full.

A walk looks at LOOK tasks at most. A walk stopped by that returns the place where the next page continues: nothing is
shown twice or left out, and a page takes no longer than that, however many tasks there are.

A place is where a page continues: (uid,) for newest first, (moment, uid) for the other orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from perdure._model import Sort
from perdure._store import Reading, Row, SummaryRow
from perdure._tasks.lists.lanes import LAST_UID, Lane, Wanted, with_prefix

LOOK = 20_000
# A lane with no more tasks than this is read whole and sorted here.
SHORT = 2_000
_LATEST = 1 << 62

Place = tuple[Any, ...]
FIRST: Mapping[Sort, Place] = {"newest": (LAST_UID,), "changed": (_LATEST, LAST_UID), "due": (-_LATEST, "")}


class Stretch(NamedTuple):
    """Rows in the order of a page, and where the next begin; None when there are no more."""

    rows: Sequence[SummaryRow]
    place: Place | None
    is_bounded: bool = False  # the walk was stopped before the page was full


def walk(engine: Reading, wanted: Wanted, sort: Sort, place: Place, limit: int) -> Stretch:
    """The next rows that fit, from a place on."""
    return _WALKS[sort](engine, wanted, place, limit)


def walk_ids(engine: Reading, wanted: Wanted, after: str, limit: int) -> Stretch:
    """Tasks whose ids begin with the searched text, in the order of their ids; a place is an id."""
    params = {**with_prefix(wanted), "above": after, "look": LOOK, "limit": limit + 1}
    rows = _rows(engine, "page_by_id", params)
    if len(rows) > limit:
        return Stretch(rows[:limit], (rows[limit - 1].id,))
    last = engine.query("extent_by_id", params)
    return Stretch(rows, tuple(last[0]) if last else None, bool(last))


# ── the orders ───────────────────────────────────────────────────────────────────────────────────


def _newest(engine: Reading, wanted: Wanted, place: Place, limit: int) -> Stretch:
    below = min(place[0], wanted.below)
    if wanted.params["changed_since"] is not None:
        few = _few_changed(engine, wanted)
        if few is not None:
            few = sorted((row for row in few if row.uid < below), key=_by_uid, reverse=True)
            return _cut(few, _by_uid, limit, None, is_rising=False)
    found: list[SummaryRow] = []
    ends: list[Place] = []
    for lane in choose(engine, wanted, below):
        params = _params(wanted, lane, limit + 1 if wanted.is_plain else LOOK, limit + 1, below=below)
        rows = _rows(engine, f"page_by_{lane.name}", params)
        found += rows
        if len(rows) <= limit and not wanted.is_plain:
            ends += _end(engine, lane, params)
    found.sort(key=_by_uid, reverse=True)
    return _cut(found, _by_uid, limit, max(ends, default=None), is_rising=False)


def _changed(engine: Reading, wanted: Wanted, place: Place, limit: int) -> Stretch:
    for lanes in wanted.groups[1:]:
        if is_short(engine, wanted, lanes, wanted.below):
            few = [row for row in _whole(engine, wanted, lanes) if _by_change(row) < place]
            return _cut(sorted(few, key=_by_change, reverse=True), _by_change, limit, None, is_rising=False)
    found: list[SummaryRow] = []
    ends: list[Place] = []
    for lane in wanted.groups[0]:
        params = _params(wanted, lane, LOOK, limit + 1, at=place[0], uid=place[1], floor=_floor(wanted))
        rows = _rows(engine, f"page_by_{lane.name}_changed", params)
        found += rows
        if len(rows) <= limit and not wanted.is_plain:
            ends += _end(engine, _by_changes(lane), params)
    found.sort(key=_by_change, reverse=True)
    return _cut(found, _by_change, limit, max(ends, default=None), is_rising=False)


def _due(engine: Reading, wanted: Wanted, place: Place, limit: int) -> Stretch:
    params = {**wanted.params, "at": place[0], "uid": place[1], "look": LOOK, "limit": limit + 1}
    found: list[SummaryRow] = []
    ends: list[Place] = []
    for name in ("due", "asked"):
        rows = _rows(engine, f"page_by_{name}", params)
        found += rows
        if len(rows) <= limit:
            ends += _end(engine, Lane(name, ""), params)
    found.sort(key=_by_due)
    return _cut(found, _by_due, limit, min(ends, default=None), is_rising=True)


_WALKS: Mapping[Sort, Callable[[Reading, Wanted, Place, int], Stretch]] = {
    "newest": _newest,
    "changed": _changed,
    "due": _due,
}


def _cut(
    found: list[SummaryRow], key: Callable[[SummaryRow], Place], limit: int, end: Place | None, *, is_rising: bool
) -> Stretch:
    """Cut the rows to a page. Beyond the end of a stopped walk there may be rows that belong between them."""
    if end is not None:
        found = [row for row in found if (key(row) <= end if is_rising else key(row) >= end)]
    if len(found) > limit:
        return Stretch(found[:limit], key(found[limit - 1]))
    return Stretch(found, end, end is not None)


def _by_uid(row: SummaryRow) -> Place:
    return (row.uid,)


def _by_change(row: SummaryRow) -> Place:
    return (row.updated_at, row.uid)


def _by_due(row: SummaryRow) -> Place:
    return (row.due_at, row.uid)


# ── lanes ────────────────────────────────────────────────────────────────────────────────────────


def choose(engine: Reading, wanted: Wanted, below: str) -> Sequence[Lane]:
    """The lanes with the fewest tasks to look at: short ones if there are any, and rather one function's or agent's
    than all of a status."""
    if len(wanted.groups) == 1:
        return wanted.groups[0]
    groups = [*wanted.groups[1:], wanted.groups[0]]
    return next((lanes for lanes in groups if is_short(engine, wanted, lanes, below)), groups[0])


def is_short(engine: Reading, wanted: Wanted, lanes: Sequence[Lane], below: str) -> bool:
    """True if few tasks have to be looked at in these lanes."""
    return not any(_end(engine, lane, _params(wanted, lane, SHORT, 0, below=below)) for lane in lanes)


def count_lane(engine: Reading, wanted: Wanted, lane: Lane, query: str = "count") -> tuple[list[Row], bool]:
    """Count the matching tasks of a lane, and tell whether there may be more than were looked at."""
    params = _params(wanted, lane, LOOK, 0, below=wanted.below)
    return engine.query(f"{query}_by_{lane.name}", params), bool(_end(engine, lane, params))


def _by_changes(lane: Lane) -> Lane:
    return lane._replace(name=f"{lane.name}_changed")


def _whole(engine: Reading, wanted: Wanted, lanes: Sequence[Lane]) -> list[SummaryRow]:
    found: list[SummaryRow] = []
    for lane in lanes:
        found += _rows(engine, f"page_by_{lane.name}", _params(wanted, lane, SHORT, SHORT, below=wanted.below))
    return found


def _few_changed(engine: Reading, wanted: Wanted) -> list[SummaryRow] | None:
    """All tasks that fit and have changed since then; None when many have changed."""
    found: list[SummaryRow] = []
    at, uid = FIRST["changed"]
    for lane in wanted.groups[0]:
        params = _params(wanted, lane, SHORT, SHORT, at=at, uid=uid, floor=_floor(wanted))
        if _end(engine, _by_changes(lane), params):
            return None
        found += _rows(engine, f"page_by_{lane.name}_changed", params)
    return found


def _floor(wanted: Wanted) -> int:
    floor: int | None = wanted.params["changed_since"]
    return -_LATEST if floor is None else floor


def _end(engine: Reading, lane: Lane, params: Mapping[str, Any]) -> list[Place]:
    """The place of the last task that a walk along the lane looks at, if that stops it."""
    return engine.query(f"extent_by_{lane.name}", params)


def _params(wanted: Wanted, lane: Lane, look: int, limit: int, **more: object) -> dict[str, Any]:
    given = {"lane": lane.value, "lane_hidden": lane.hidden, "above": wanted.above, "look": look, "limit": limit}
    return {**wanted.params, **given, **more}


def _rows(engine: Reading, name: str, params: Mapping[str, Any]) -> list[SummaryRow]:
    return [SummaryRow(*row) for row in engine.query(name, params)]
