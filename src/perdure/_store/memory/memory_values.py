"""What memory layers keep, by key; the same names and parameters as `sqlite/queries`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perdure._store.contract import Params, Row
from perdure._store.memory.tables import Tables

_HEAD = 300


class Kept(NamedTuple):
    owner: str
    version: int
    at: int
    expires_at: int | None
    value: bytes


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────


def put_memory(tables: Tables, p: Params) -> Row | None:
    if p["epoch"] is not None and not tables.may_write(p["uid"], p["epoch"], p["worker"]):
        return None
    place = (p["namespace"], "", p["key"])
    found = tables.memory.get(place)
    version = found.version if found is not None else 0
    is_expired = found is not None and _is_over(found, p["at"])
    if p["seen"] not in (None, version) and not (is_expired and p["seen"] == 0):
        return None
    tables.put(tables.memory, place, Kept(p["owner"], version + 1, p["at"], p["expires_at"], p["value"]))
    return (version + 1,)


def record_memory(tables: Tables, p: Params) -> Row | None:
    place = (p["line"], p["position"])
    if not tables.may_write(p["uid"], p["epoch"], p["worker"]) or place in tables.journal.get(p["uid"], {}):
        return None
    kept = put_memory(tables, p)
    tables.put_entry(p["uid"], place, p["refused"] if kept is None else p["entry"])
    return (p["position"], 0 if kept is None else kept[0])


def drop_memory(tables: Tables, p: Params) -> Row | None:
    place = (p["namespace"], "", p["key"])
    found = tables.memory.get(place)
    if found is None or (p["before"] is not None and not _is_over(found, p["before"])):
        return None
    tables.remove(tables.memory, place)
    return (found.version,)


def reseal_memory(tables: Tables, p: Params) -> Row | None:
    place = (p["uid"], p["life"], p["key"])
    found = tables.memory.get(place)
    if found is None or found.value != p["old_value"]:
        return None
    tables.put(tables.memory, place, found._replace(value=p["value"]))
    return (found.version,)


def forget_task(tables: Tables, namespace: str, id: str, life: str) -> None:
    """A task is deleted, and what it remembered with it."""
    for place in _of_task(tables, namespace, id, life):
        tables.remove(tables.memory, place)


def lay_aside(tables: Tables, namespace: str, id: str, uid: str) -> None:
    """Another task takes the place of this one; what it remembered stays with it."""
    for place in _of_task(tables, namespace, id, ""):
        kept = tables.memory[place]
        tables.remove(tables.memory, place)
        tables.put(tables.memory, (namespace, uid, place[2]), kept)


def _of_task(tables: Tables, namespace: str, id: str, life: str) -> list[tuple[str, str, str]]:
    return [place for place, kept in tables.memory.items() if place[:2] == (namespace, life) and kept.owner == id != ""]


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def get_memory(tables: Tables, p: Params) -> list[Row]:
    found = tables.memory.get((p["namespace"], p["life"], p["key"]))
    return [] if found is None else [(found.version, found.at, found.expires_at, found.value)]


def list_memory(tables: Tables, p: Params) -> list[Row]:
    rows: list[Row] = [
        (key, kept.version, kept.expires_at)
        for (namespace, life, key), kept in sorted(tables.memory.items())
        if (namespace, life) == (p["namespace"], p["life"])
        and key >= p["first"]
        and (p["below"] is None or key < p["below"])
    ]
    return rows[: p["limit"]]


def expired_memory(tables: Tables, p: Params) -> list[Row]:
    rows: list[Row] = [
        (key,)
        for (namespace, life, key), kept in sorted(tables.memory.items())
        if (namespace, life) == (p["namespace"], "") and _is_over(kept, p["before"])
    ]
    return rows[: p["limit"]]


def heads_of_memory(tables: Tables, p: Params) -> list[Row]:
    rows: list[Row] = [
        (*place, kept.value[:_HEAD])
        for place, kept in sorted(tables.memory.items())
        if place > (p["uid"], p["life"], p["key"])
    ]
    return rows[: p["limit"]]


def _is_over(kept: Kept, before: int) -> bool:
    return kept.expires_at is not None and kept.expires_at <= before


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (put_memory, record_memory, drop_memory, reseal_memory)
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (get_memory, list_memory, expired_memory, heads_of_memory)
QUERIES = {query.__name__: query for query in _QUERIES}
