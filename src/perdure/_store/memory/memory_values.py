"""The values of memory layers, by key; the same names and parameters as `sqlite/queries`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row

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


def write_memory(tables: Tables, p: Params) -> Row | None:
    if p["epoch"] is not None and not tables.may_write(p["uid"], p["epoch"], p["worker"]):
        return None
    rows, versions = json.loads(p["rows"]), []
    for row in rows:
        found = tables.memory.get((p["namespace"], "", row["key"]))
        version = found.version if found is not None else 0
        is_expired = found is not None and _is_over(found, p["at"])
        if row["seen"] not in (None, version) and not (is_expired and row["seen"] == 0):
            return None
        versions.append(version if row["size"] is None else version + 1)
    for row, version in zip(rows, versions, strict=True):
        place, start = (p["namespace"], "", row["key"]), row["start"] - 1
        if row["size"] is not None:
            value = p["contents"][start : start + row["size"]]
            tables.put(tables.memory, place, Kept(row["owner"], version, p["at"], row["expires_at"], value))
        elif place in tables.memory:
            tables.remove(tables.memory, place)
    return (json.dumps(versions, separators=(",", ":")),)


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
    """Another task takes the id of this one; its memory values stay with it."""
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


def scan_memory(tables: Tables, p: Params) -> list[Row]:
    return _live(tables, p, lambda key: bool(p["first"] <= key < p["below"]))[: p["limit"]]


def scan_memory_back(tables: Tables, p: Params) -> list[Row]:
    return _live(tables, p, lambda key: bool(p["first"] <= key < p["below"]))[::-1][: p["limit"]]


def get_memories(tables: Tables, p: Params) -> list[Row]:
    wanted = set(json.loads(p["keys"]))
    return _live(tables, p, wanted.__contains__)


def _live(tables: Tables, p: Params, is_asked: Callable[[str], bool]) -> list[Row]:
    return [
        (key, kept.version, kept.value)
        for (namespace, life, key), kept in sorted(tables.memory.items())
        if (namespace, life) == (p["namespace"], "") and is_asked(key) and not _is_over(kept, p["now"])
    ]


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


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (
    put_memory, write_memory, record_memory, drop_memory, reseal_memory,
)  # fmt: skip
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (
    get_memory, get_memories, list_memory, scan_memory, scan_memory_back, expired_memory, heads_of_memory,
)  # fmt: skip
QUERIES = {query.__name__: query for query in _QUERIES}
