"""Named values beside tasks, and what handlers have had of events; the same names as in `sqlite/queries`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row

_LIVE = ("pending", "running", "paused")
_HEAD = 300


class Value(NamedTuple):
    key: str
    version: int
    due_at: int | None
    changed_at: int
    author: str
    value: bytes


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────


def add_value(tables: Tables, p: Params) -> Row | None:
    if _found(tables, p) is not None:
        return None
    return _put(tables, p, 1)


def change_value(tables: Tables, p: Params) -> Row | None:
    found = _found(tables, p)
    if found is None or found.version != p["version"]:
        return None
    return _put(tables, p, found.version + 1)


def drop_value(tables: Tables, p: Params) -> Row | None:
    found = _found(tables, p)
    if found is None or found.version != p["version"]:
        return None
    tables.remove(tables.shelf[p["uid"]], (p["kind"], p["key"]))
    return (found.version,)


def reseal_value(tables: Tables, p: Params) -> Row | None:
    found = _found(tables, p)
    if found is None or found.value != p["old_value"]:
        return None
    tables.put_of(tables.shelf, p["uid"], (p["kind"], p["key"]), found._replace(value=p["value"]))
    return (found.key,)


def deliver(tables: Tables, p: Params) -> Row | None:
    if p["uid"] not in tables.tasks or tables.deliveries.get(p["uid"], {}).get(p["handler"], -1) >= p["delivered"]:
        return None
    tables.put_of(tables.deliveries, p["uid"], p["handler"], p["delivered"])
    return (p["delivered"],)


def _found(tables: Tables, p: Params) -> Value | None:
    found: Value | None = tables.shelf.get(p["uid"], {}).get((p["kind"], p["key"]))
    return found


def _put(tables: Tables, p: Params, version: int) -> Row:
    value = Value(p["key"], version, p["due_at"], p["at"], p["author"], p["value"])
    tables.put_of(tables.shelf, p["uid"], (p["kind"], p["key"]), value)
    return (version,)


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def get_value(tables: Tables, p: Params) -> list[Row]:
    found = _found(tables, p)
    return [] if found is None else [found]


def list_values(tables: Tables, p: Params) -> list[Row]:
    found = sorted(value for value in _of_kind(tables, p) if value.key > p["after"])
    rows: list[Row] = list(found)
    return rows[: p["limit"]]


def due_values(tables: Tables, p: Params) -> list[Row]:
    found = [(value.due_at, value.key, value) for value in _of_kind(tables, p) if value.due_at is not None]
    rows: list[Row] = [value for due_at, _, value in sorted(found) if due_at <= p["by"]]
    return rows[: p["limit"]]


def _of_kind(tables: Tables, p: Params) -> list[Value]:
    return [value for (kind, _), value in tables.shelf.get(p["uid"], {}).items() if kind == p["kind"]]


def heads_of_values(tables: Tables, p: Params) -> list[Row]:
    found = [(owner, *key, value.value[:_HEAD]) for owner, rows in tables.shelf.items() for key, value in rows.items()]
    place = (p["uid"], p["kind"], p["key"])
    return sorted(row for row in found if row[:3] > place)[: p["limit"]]


def read_undelivered(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid, task in sorted(tables.tasks.items()):
        had = tables.deliveries.get(uid, {}).get(p["handler"], 0)
        is_near = task.status in _LIVE or (task.finished_at or 0) >= p["ended_since"]
        is_new = task.namespace == p["namespace"] and task.updated_at >= p["since"]
        if is_new and is_near and task.event_count > had:
            found.append((uid, task.id, task.event_count, had))
    return found[: p["limit"]]


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (
    add_value,
    change_value,
    drop_value,
    reseal_value,
    deliver,
)
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (get_value, list_values, due_values, heads_of_values)
_QUERIES += (read_undelivered,)
QUERIES = {query.__name__: query for query in _QUERIES}
