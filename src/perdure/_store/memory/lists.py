"""Pages, counts and changes of tasks; the same names and parameters as `sqlite/queries`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row, SummaryRow, TaskRow

_LIVE = ("pending", "running", "paused")
_HUMAN = ("human_approval", "human_input")
Query = Callable[[Tables, Params], list[Row]]
# A task in a walk, with its place in the order.
Looked = tuple[Any, TaskRow]
Lane = Callable[[Tables, Params], list[Looked]]


# ── the order in which tasks are looked at ───────────────────────────────────────────────────────


def _by_uid(belongs: Callable[[Tables, TaskRow, Params], bool]) -> Lane:
    """The newest first, of those that belong to the lane."""

    def lane(tables: Tables, p: Params) -> list[Looked]:
        found = [
            (row.uid, row)
            for row in tables.tasks.values()
            if p["above"] < row.uid < p["below"] and belongs(tables, row, p)
        ]
        return sorted(found, reverse=True, key=_place)[: p["look"]]

    return lane


def _is_listed(tables: Tables, row: TaskRow, p: Params) -> bool:
    return _is_here(row, p) and row.archived_at is None and _is_in_lane(row, p)


def _is_archived(tables: Tables, row: TaskRow, p: Params) -> bool:
    return _is_here(row, p) and row.archived_at is not None and _is_in_lane(row, p)


def _is_in_lane(row: TaskRow, p: Params) -> bool:
    return (row.status, row.hidden) == (p["lane"], p["lane_hidden"])


def _is_of_agent(tables: Tables, row: TaskRow, p: Params) -> bool:
    return bool(row.namespace == p["namespace"] and row.agent and row.agent == p["lane"])


def _is_of_function(tables: Tables, row: TaskRow, p: Params) -> bool:
    return row.uid in tables.calls and tables.calls[row.uid].function == p["lane"]


def _is_of_parent(tables: Tables, row: TaskRow, p: Params) -> bool:
    return row.uid in tables.calls and tables.calls[row.uid].parent_uid == p["lane"]


def _by_changed(belongs: Callable[[Tables, TaskRow, Params], bool]) -> Lane:
    """The most recently changed first, of those in the lane."""

    def lane(tables: Tables, p: Params) -> list[Looked]:
        rows = (row for row in tables.tasks.values() if belongs(tables, row, p) and row.updated_at >= p["floor"])
        found = [((row.updated_at, row.uid), row) for row in rows if (row.updated_at, row.uid) < (p["at"], p["uid"])]
        return sorted(found, reverse=True, key=_place)[: p["look"]]

    return lane


def _by_due(tables: Tables, p: Params) -> list[Looked]:
    rows = (row for row in tables.tasks.values() if row.due_at is not None)
    return _soonest([((row.due_at, row.uid), row) for row in rows], p)


def _by_asked(tables: Tables, p: Params) -> list[Looked]:
    due = {uid: _question_due(tables, uid) for uid in tables.pauses if uid in tables.tasks}
    return _soonest([((at, uid), tables.tasks[uid]) for uid, at in due.items() if at is not None], p)


def _soonest(found: list[Looked], p: Params) -> list[Looked]:
    return sorted((one for one in found if one[0] > (p["at"], p["uid"])), key=_place)[: p["look"]]


def _by_id(tables: Tables, p: Params) -> list[Looked]:
    rows = [row for row in tables.tasks.values() if _is_here(row, p) and p["id_from"] <= row.id < p["id_to"]]
    return sorted(((row.id, row) for row in rows if row.id > p["above"]), key=_place)[: p["look"]]


def _place(looked: Looked) -> Any:
    return looked[0]


LANES: dict[str, Lane] = {
    "status": _by_uid(_is_listed),
    "archived": _by_uid(_is_archived),
    "agent": _by_uid(_is_of_agent),
    "function": _by_uid(_is_of_function),
    "parent": _by_uid(_is_of_parent),
    "status_changed": _by_changed(_is_listed),
    "archived_changed": _by_changed(_is_archived),
    "due": _by_due,
    "asked": _by_asked,
    "id": _by_id,
}


# ── what a filter lets through ───────────────────────────────────────────────────────────────────


def _is_here(row: TaskRow, p: Params) -> bool:
    return row.namespace == p["namespace"] and bool(row.is_current)


def _is_wanted(tables: Tables, row: TaskRow, p: Params) -> bool:
    call = tables.calls.get(row.uid)
    called: dict[str, Any] = (
        {"function": None, "version": None, "queue": None, "parent": None}
        if call is None
        else {"function": call.function, "version": call.version, "queue": call.queue, "parent": call.parent_uid}
    )
    return (
        _is_here(row, p)
        and (bool(p["archived"]) or row.archived_at is None)
        and (bool(p["hidden"]) or not row.hidden)
        and (p["statuses"] is None or row.status in json.loads(p["statuses"]))
        and (p["reasons"] is None or row.pause_reason in json.loads(p["reasons"]))
        and all(p[name] is None or p[name] == has for name, has in called.items())
        and (p["agent"] is None or row.agent == p["agent"])
        and (p["since"] is None or row.created_at >= p["since"])
        and (p["until"] is None or row.created_at < p["until"])
        and (p["changed_since"] is None or row.updated_at >= p["changed_since"])
        and (p["id_from"] is None or p["id_from"] <= row.id < p["id_to"])
        and (p["not_from"] is None or not p["not_from"] <= row.id < p["not_to"])
        and (p["text"] is None or p["text"] in _lowered(row.id) or p["text"] in _lowered(row.name))
        and json.loads(p["tags"]).items() <= json.loads(row.tags).items()
        and (p["marks"] is None or any(_MARKS[mark](tables, row) for mark in p["marks"].split()))
    )


def _is_called(tables: Tables, row: TaskRow) -> bool:
    return row.uid in tables.calls


def _is_asking(tables: Tables, row: TaskRow) -> bool:
    asked = tables.pauses.get(row.uid, {}).values()
    return row.pause_reason in _HUMAN or any(one.answer is None and one.reason in _HUMAN for one in asked)


def _is_held(tables: Tables, row: TaskRow) -> bool:
    lease = tables.leases.get(row.uid)
    return lease is not None and lease.worker is not None


def _is_switched(tables: Tables, row: TaskRow) -> bool:
    switches = [tables.switches.get((row.namespace, id)) for id in ("", row.id)]
    return any(switch is not None and switch.is_on for switch in switches)


def _is_later(tables: Tables, row: TaskRow) -> bool:
    return row.uid in tables.calls and tables.calls[row.uid].not_before is not None


_MARKS: dict[str, Callable[[Tables, TaskRow], bool]] = {
    "ended": lambda _, row: row.status not in _LIVE,
    "paused": lambda _, row: row.status == "paused",
    "called": lambda tables, row: _is_called(tables, row) and row.status != "paused",
    "plain": lambda tables, row: not _is_called(tables, row) and row.status != "paused",
    "later": _is_later,
    "needing": lambda _, row: row.started_at is None and row.depends_on != "[]",
    "held": _is_held,
    "asking": _is_asking,
    "switched": _is_switched,
    "cancelling": lambda tables, row: any(name == "~cancel" for name, _ in tables.signals.get(row.uid, {})),
}


def _lowered(text: str) -> str:
    """In small letters, of ASCII alone: as the other engines have it."""
    return text.encode().lower().decode()


def _summary(tables: Tables, row: TaskRow) -> SummaryRow:
    call = tables.calls.get(row.uid)
    due_at = row.due_at
    if due_at is None and row.status in _LIVE:
        due_at = _question_due(tables, row.uid)
    same = {name: getattr(row, name) for name in SummaryRow._fields[:-3]}
    called = (None, None, None) if call is None else (call.function, call.version, call.queue)
    return SummaryRow(**{**same, "due_at": due_at}, **dict(zip(SummaryRow._fields[-3:], called, strict=True)))


def _question_due(tables: Tables, uid: str) -> int | None:
    asked = (one for one in tables.pauses.get(uid, {}).values() if one.answer is None and one.due_at is not None)
    return min((one.due_at for one in asked), default=None)


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def _wanted(name: str, tables: Tables, p: Params) -> Iterator[TaskRow]:
    for _, row in LANES[name](tables, p):
        if _is_wanted(tables, row, p):
            yield row


def _page(name: str) -> Query:
    def page(tables: Tables, p: Params) -> list[Row]:
        rows = list(_wanted(name, tables, p))
        if name == "asked":
            rows = [row for row in rows if row.due_at is None and row.status in _LIVE]
        return [_summary(tables, row) for row in rows[: p["limit"]]]

    return page


def _count(name: str) -> Query:
    def count(tables: Tables, p: Params) -> list[Row]:
        counts = Counter((row.status, row.pause_reason) for row in _wanted(name, tables, p))
        return [(*key, number) for key, number in counts.items()]

    return count


def _extent(name: str) -> Query:
    def extent(tables: Tables, p: Params) -> list[Row]:
        looked = LANES[name](tables, p)
        if len(looked) < p["look"]:
            return []
        place = looked[-1][0]
        return [place if isinstance(place, tuple) else (place,)]

    return extent


def facets_by_status(tables: Tables, p: Params) -> list[Row]:
    found: Counter[Row] = Counter()
    for row in _wanted("status", tables, p):
        call = tables.calls.get(row.uid)
        found[None if call is None else call.function, None if call is None else call.queue, row.agent, row.tags] += 1
    return [(*key, number) for key, number in found.items()]


def count_children(tables: Tables, p: Params) -> list[Row]:
    found = []
    for uid in json.loads(p["uids"]):
        children = [child for child, call in tables.calls.items() if call.parent_uid == uid and child in tables.tasks]
        if children:
            found.append((uid, len(children), sum(tables.tasks[child].status in _LIVE for child in children)))
    return found


def count_tasks(tables: Tables, p: Params) -> list[Row]:
    rows = (row for row in tables.tasks.values() if _is_here(row, p) and row.archived_at is None and not row.hidden)
    return [(*key, number) for key, number in Counter((row.status, row.pause_reason) for row in rows).items()]


def changed_tasks(tables: Tables, p: Params) -> list[Row]:
    rows = [row for row in tables.tasks.values() if _is_here(row, p) and not row.hidden]
    found = sorted(((row.updated_at, row.uid), row) for row in rows if (row.updated_at, row.uid) > (p["at"], p["uid"]))
    return [_summary(tables, row) for _, row in found[: p["limit"]]]


def summaries_of(tables: Tables, p: Params) -> list[Row]:
    rows = [tables.tasks[uid] for uid in sorted(json.loads(p["uids"]), reverse=True) if uid in tables.tasks]
    return [_summary(tables, row) for row in rows if row.namespace == p["namespace"]]


def deleted_tasks(tables: Tables, p: Params) -> list[Row]:
    rows = [row for row in tables.tombstones.values() if row.namespace == p["namespace"]]
    found = sorted((row.deleted_at, row.uid) for row in rows)
    return [place for place in found if place > (p["at"], p["uid"])][: p["limit"]]


_NEWEST_FIRST = ("status", "archived", "agent", "function", "parent")
VERBS: dict[str, Callable[[Tables, Params], Row | None]] = {}
QUERIES: dict[str, Query] = {f"page_by_{name}": _page(name) for name in LANES}
QUERIES |= {f"count_by_{name}": _count(name) for name in _NEWEST_FIRST}
QUERIES |= {f"extent_by_{name}": _extent(name) for name in LANES}
_OTHERS = (count_tasks, count_children, facets_by_status, changed_tasks, summaries_of, deleted_tasks)
QUERIES |= {query.__name__: query for query in _OTHERS}
