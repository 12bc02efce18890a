"""Pauses that end by themselves: moments, other tasks, providers' limits; as in `sqlite/queries`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from perdure._store.memory.tables import Tables
from perdure._store.memory.verbs import change
from perdure._store.rows import Params, Row

_LIVE = ("pending", "running", "paused")


class RateLimit(NamedTuple):
    provider: str
    hits: int
    streak: int
    reset_at: int | None
    hit_at: int


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────


def rearm_pause(tables: Tables, p: Params) -> Row | None:
    question = _due_question(tables, p)
    if question is None:
        return None
    later = question._replace(due_at=p["due_at"], question=p["question"])
    tables.put_of(tables.pauses, p["uid"], question.path, later)
    return (question.path,)


def remind_pause(tables: Tables, p: Params) -> Row | None:
    question = _due_question(tables, p)
    if question is None:
        return None
    tables.put_of(tables.pauses, p["uid"], question.path, question._replace(due_at=p["due_at"]))
    change(tables, tables.tasks[p["uid"]], p)
    return (question.path,)


def _due_question(tables: Tables, p: Params) -> Any:
    question = tables.pauses.get(p["uid"], {}).get(p["path"])
    if question is None or question.answer is not None or question.due_at != p["seen_due_at"]:
        return None
    return question


def rearm_task(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.status != "paused" or task.due_at != p["seen_due_at"]:
        return None
    tables.put(tables.tasks, task.uid, task._replace(due_at=p["due_at"], pause=p["pause"]))
    return (task.version,)


def note_rate_limit(tables: Tables, p: Params) -> Row | None:
    key, at = (p["namespace"], p["provider"]), p["at"]
    known = tables.rate_limits.get(key)
    if known is None:
        new = RateLimit(p["provider"], 1, 1, p["reset_at"], at)
    else:
        streak = 1 if at - known.hit_at > p["quiet_ms"] else known.streak + 1
        resets = [moment for moment in (known.reset_at, p["reset_at"]) if moment is not None]
        new = RateLimit(p["provider"], known.hits + 1, streak, max(resets, default=None), at)
    tables.put(tables.rate_limits, key, new)
    return (new.hits, new.streak, new.reset_at)


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def read_rate_limits(tables: Tables, p: Params) -> list[Row]:
    return sorted(row for (namespace, _), row in tables.rate_limits.items() if namespace == p["namespace"])


def due_pauses(tables: Tables, p: Params) -> list[Row]:
    rows: list[Row] = [
        (task.uid, task.id, task.status, *question[:6])
        for task in tables.tasks.values()
        if task.namespace == p["namespace"]
        for question in tables.pauses.get(task.uid, {}).values()
        if question.answer is None and question.due_at is not None and (question.topic == "~poll") == bool(p["polls"])
    ]
    return sorted(rows, key=lambda row: (row[8], row[0], row[3]))[: p["limit"]]


def due_tasks(tables: Tables, p: Params) -> list[Row]:
    found = [
        (task.due_at, task.uid)
        for task in tables.tasks.values()
        if task.namespace == p["namespace"]
        and task.due_at is not None
        and task.status == "paused"
        and (task.pause_reason == "external_dependency") == bool(p["polls"])
    ]
    return [(uid, due_at) for due_at, uid in sorted(found)][: p["limit"]]


def outside_waits(tables: Tables, p: Params) -> list[Row]:
    found = [
        (task.uid, task.due_at, task.pause)
        for task in tables.tasks.values()
        if (task.namespace, task.status, task.pause_reason) == (p["namespace"], "paused", "external_dependency")
        and task.due_at is not None
        and task.uid > p["after"]
    ]
    return sorted(found, key=lambda row: row[0])[: p["limit"]]


def find_ended(tables: Tables, p: Params) -> list[Row]:
    ids = json.loads(p["ids"])
    return sorted(
        (task.id,)
        for task in tables.tasks.values()
        if task.namespace == p["namespace"] and task.id in ids and task.is_current and task.status not in _LIVE
    )


def due_after_tasks(tables: Tables, p: Params) -> list[Row]:
    rows: list[Row] = []
    for task in tables.tasks.values():
        if task.namespace != p["namespace"] or task.status not in _LIVE:
            continue
        for question in tables.pauses.get(task.uid, {}).values():
            if question.answer is None and (question.topic or "").startswith("~task "):
                other = tables.tasks.get(tables.current.get((task.namespace, question.topic[6:]), ""))
                if other is not None and other.status not in _LIVE:
                    rows.append((task.uid, task.id, question.path, question.question, other.uid, other.status))
    return sorted(rows, key=lambda row: (row[0], row[2]))[: p["limit"]]


def read_time(tables: Tables, p: Params) -> list[Row]:
    return [(time.time_ns() // 1_000_000,)]


def find_paused(tables: Tables, p: Params) -> list[Row]:
    asked = json.loads(p["uids"])
    return sorted((uid, task.pause) for uid, task in tables.tasks.items() if uid in asked and task.status == "paused")


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...]
_VERBS = (rearm_pause, remind_pause, rearm_task, note_rate_limit)
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...]
_QUERIES = (read_rate_limits, due_pauses, due_tasks, due_after_tasks, find_paused, read_time, outside_waits)
_QUERIES += (find_ended,)
QUERIES = {query.__name__: query for query in _QUERIES}
