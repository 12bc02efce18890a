"""Read the rows of one page: walk along an index in the order of the page, and stop when it is full.

No walk looks at more than LOOK tasks. One that was stopped by that says where the next page goes on: nothing is shown
twice or left out, and a page takes no longer than that however many tasks there are.

A place is where a page goes on: (uid,) for the newest first, (moment, uid) for the other orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from perdure._model import Sort
from perdure._store import Engine, SummaryRow
from perdure._tasks.lists.lanes import LAST_UID, Lane, Wanted, with_prefix

LOOK = 20_000
# Tasks of a lane that has no more than these are read whole and put in order here.
SHORT = 2_000
_LATEST = 1 << 62

Place = tuple[Any, ...]
FIRST: Mapping[Sort, Place] = {"newest": (LAST_UID,), "changed": (_LATEST, LAST_UID), "due": (-_LATEST, "")}


class Stretch(NamedTuple):
    """Rows in the order of a page, and where the next begin; None when there are no more."""

    rows: Sequence[SummaryRow]
    place: Place | None
    is_bounded: bool = False  # the walk was stopped before the page was full


def walk(engine: Engine, wanted: Wanted, sort: Sort, place: Place, limit: int) -> Stretch:
    """The next rows that fit, from a place on."""
    return _WALKS[sort](engine, wanted, place, limit)


def walk_ids(engine: Engine, wanted: Wanted, after: str, limit: int) -> Stretch:
    """Tasks whose ids begin with the text that is looked for, in the order of their ids; a place is an id."""
    params = {**with_prefix(wanted), "above": after, "look": LOOK, "limit": limit + 1}
    rows = _rows(engine, "page_by_id", params)
    if len(rows) > limit:
        return Stretch(rows[:limit], (rows[limit - 1].id,))
    last = engine.query("extent_by_id", params)
    return Stretch(rows, tuple(last[0]) if last else None, bool(last))


# ── the orders ───────────────────────────────────────────────────────────────────────────────────


def _newest(engine: Engine, wanted: Wanted, place: Place, limit: int) -> Stretch:
    below = min(place[0], wanted.below)
    lanes = wanted.groups[0] if len(wanted.groups) == 1 else shortest(engine, wanted, below)[0]
    found: list[SummaryRow] = []
    ends: list[Place] = []
    for lane in lanes:
        params = _params(wanted, lane, below, limit + 1 if wanted.is_plain else LOOK, limit + 1)
        rows = _rows(engine, f"page_by_{lane.name}", params)
        found += rows
        if len(rows) <= limit and not wanted.is_plain:
            count, last = extent(engine, lane, params)
            ends += [(last,)] if count >= LOOK else []
    found.sort(key=_by_uid, reverse=True)
    return _cut(found, _by_uid, limit, max(ends, default=None), is_rising=False)


def _changed(engine: Engine, wanted: Wanted, place: Place, limit: int) -> Stretch:
    if not wanted.is_any:
        lanes, count = shortest(engine, wanted, wanted.below, SHORT + 1)
        if count <= SHORT:
            found = [row for row in _whole(engine, wanted, lanes) if _by_change(row) < place]
            found.sort(key=_by_change, reverse=True)
            return _cut(found, _by_change, limit, None, is_rising=False)
    params = {**wanted.params, "at": place[0], "uid": place[1], "look": LOOK, "limit": limit + 1}
    found = _rows(engine, "page_by_changed", params)
    ends = engine.query("extent_by_changed", params) if len(found) <= limit else []
    return _cut(found, _by_change, limit, tuple(ends[0]) if ends else None, is_rising=False)


def _due(engine: Engine, wanted: Wanted, place: Place, limit: int) -> Stretch:
    params = {**wanted.params, "at": place[0], "uid": place[1], "look": LOOK, "limit": limit + 1}
    found: list[SummaryRow] = []
    ends: list[Place] = []
    for name in ("due", "asked"):
        rows = _rows(engine, f"page_by_{name}", params)
        found += rows
        if len(rows) <= limit:
            ends += [tuple(row) for row in engine.query(f"extent_by_{name}", params)]
    found.sort(key=_by_due)
    return _cut(found, _by_due, limit, min(ends, default=None), is_rising=True)


_WALKS: Mapping[Sort, Callable[[Engine, Wanted, Place, int], Stretch]] = {
    "newest": _newest,
    "changed": _changed,
    "due": _due,
}


def _cut(
    found: list[SummaryRow], key: Callable[[SummaryRow], Place], limit: int, end: Place | None, *, is_rising: bool
) -> Stretch:
    """The rows of a page. Behind the end of a walk that was stopped there may be others that belong between."""
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


def shortest(engine: Engine, wanted: Wanted, below: str, most: int = LOOK) -> tuple[Sequence[Lane], int]:
    """The lanes with the fewest tasks to look at, and how many those are, counted up to `most` of each lane."""
    counts = [
        sum(extent(engine, lane, _params(wanted, lane, below, most, 0))[0] for lane in lanes) for lanes in wanted.groups
    ]
    least = min(counts)
    return wanted.groups[counts.index(least)], least


def extent(engine: Engine, lane: Lane, params: Mapping[str, Any]) -> tuple[int, str | None]:
    """How many tasks a walk along the lane looks at, and the uid of the last."""
    rows = engine.query(f"extent_by_{lane.name}", params)
    return (rows[0][0], rows[0][1]) if rows else (0, None)  # a store that is not there yet has none


def _whole(engine: Engine, wanted: Wanted, lanes: Sequence[Lane]) -> list[SummaryRow]:
    found: list[SummaryRow] = []
    for lane in lanes:
        found += _rows(engine, f"page_by_{lane.name}", _params(wanted, lane, wanted.below, LOOK, LOOK))
    return found


def _params(wanted: Wanted, lane: Lane, below: str, look: int, limit: int) -> dict[str, Any]:
    return {
        **wanted.params,
        "lane": lane.value,
        "below": below,
        "above": wanted.above,
        "look": look,
        "limit": limit,
    }


def count_lane(engine: Engine, wanted: Wanted, lane: Lane, query: str = "count") -> tuple[list[Any], bool]:
    """What a counting query answers of a lane, and whether there was more than it looked at."""
    params = _params(wanted, lane, wanted.below, LOOK, 0)
    return list(engine.query(f"{query}_by_{lane.name}", params)), extent(engine, lane, params)[0] >= LOOK


def _rows(engine: Engine, name: str, params: Mapping[str, Any]) -> list[SummaryRow]:
    return [SummaryRow(*row) for row in engine.query(name, params)]
