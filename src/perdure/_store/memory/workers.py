"""Reads and writes of workers: dead processes' leases, limits, turns; as in `sqlite/queries`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from perdure._store.memory.switches import is_stopped
from perdure._store.memory.tables import Tables
from perdure._store.memory.verbs import change, end_attempts
from perdure._store.rows import Params, Row, TaskRow

_LIVE = ("pending", "running", "paused")
# Milliseconds of waiting that a point of priority counts as.
_POINT = 60_000
# The most bytes of arguments to return with a task that has had no attempt.
_SHORT = 4096


class Slot(NamedTuple):
    scope: str
    n: int
    task_uid: str
    epoch: int
    worker: str
    until: int


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────


def announce(tables: Tables, p: Params) -> Row | None:
    worker = tables.workers.get(p["worker"])
    if worker is None:
        return None
    tables.put(tables.workers, worker.id, worker._replace(knows=p["knows"]))
    return (worker.id,)


def ask_worker(tables: Tables, p: Params) -> Row | None:
    worker = tables.workers.get(p["worker"])
    if worker is None:
        return None
    tables.put(tables.workers, worker.id, worker._replace(wish=p["wish"]))
    return (worker.id,)


def reap(tables: Tables, p: Params) -> Row | None:
    uid = p["uid"]
    if not tables.may_write(uid, p["seen_epoch"], p["seen_worker"]):
        return None
    holder = tables.workers.get(p["seen_worker"])
    if p["seen_beats"] is not None and (holder is None or holder.beats != p["seen_beats"]):
        return None
    tables.put(tables.leases, uid, tables.leases[uid]._replace(worker=None))
    end_attempts(tables, uid, p["at"], p["ended"])
    if uid in tables.calls:
        counted = {name: p[name] for name in ("losses", "lost_position", "not_before")}
        tables.put(tables.calls, uid, tables.calls[uid]._replace(**counted))
    change(tables, tables.tasks[uid], p)
    return (p["seen_epoch"],)


def stand_down(tables: Tables, p: Params) -> Row | None:
    attempt = tables.attempts.get(p["uid"], {}).get(p["epoch"])
    if attempt is None or attempt.worker != p["worker"] or attempt.ended_at is None:
        return None
    if attempt.ended.endswith(p["stopped"]):
        return None
    told = attempt._replace(ended=attempt.ended + p["stopped"])
    tables.put_of(tables.attempts, p["uid"], attempt.number, told)
    return (attempt.number,)


def postpone(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or not task.is_current or task.status not in ("pending", "running"):
        return None
    if task.uid not in tables.calls or tables.leases[task.uid].epoch != 0:
        return None
    call = tables.calls[task.uid]._replace(arguments=p["arguments"], not_before=p["not_before"])
    tables.put(tables.calls, task.uid, call)
    return (change(tables, task, p).version,)


def flag_attempt(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.version != p["version"] or not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    return (change(tables, task, p).version,)


def take_slot(tables: Tables, p: Params) -> Row | None:
    place = (p["scope"], p["n"])
    found = tables.slots.get(place)
    if found is not None and found[2:] != tuple(p[f"seen_{name}"] for name in ("uid", "epoch", "worker", "until")):
        return None
    tables.put(tables.slots, place, Slot(*place, p["uid"], p["epoch"], p["worker"], p["until"]))
    return (p["n"],)


def free_slot(tables: Tables, p: Params) -> Row | None:
    place = (p["scope"], p["n"])
    found = tables.slots.get(place)
    if found is None or found[2:5] != (p["uid"], p["epoch"], p["worker"]):
        return None
    tables.remove(tables.slots, place)
    return (p["n"],)


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def find_claimable(tables: Tables, p: Params) -> list[Row]:
    queues, functions, upgrading = (json.loads(p[name]) for name in ("queues", "functions", "upgrading"))
    found: list[tuple[tuple[bool, int, int, str], Row]] = []
    for uid, call in tables.calls.items():
        task, lease = tables.tasks[uid], tables.leases[uid]
        is_wanted = task.namespace == p["namespace"] and call.queue in queues
        is_known = f"{call.function} {call.version}" in functions or call.function in upgrading
        is_free = task.status in ("pending", "running") and task.is_current and lease.worker is None
        is_free = is_free and not is_stopped(tables, task.namespace, task.id)
        if not _may_begin(tables, task):
            continue
        if is_wanted and is_known and is_free and (call.not_before is None or call.not_before <= p["now"]):
            since = task.updated_at - call.priority * _POINT
            turn = (task.status == "pending", since, lease.taken_at or 0, uid)
            place = (uid, task.id, call.function, call.version, lease.epoch, task.status, call.queue, call.key)
            is_new = lease.epoch == 0 and task.seq == 0 and task.line == 1
            is_new = is_new and call.budget is None and call.deadline_at is None
            short = call.arguments if is_new and len(call.arguments) <= _SHORT else None
            found.append((turn, (*place, short, call.losses)))
    return [row for _, row in sorted(found)][: p["limit"]]


def next_start(tables: Tables, p: Params) -> list[Row]:
    moments = []
    for uid, call in tables.calls.items():
        task = tables.tasks[uid]
        is_wanted = task.namespace == p["namespace"] and task.is_current and task.archived_at is None
        is_later = call.not_before is not None and call.not_before > p["now"]
        if is_wanted and is_later and task.status in ("pending", "running"):
            moments.append(call.not_before)
    return [(min(filter(None, moments), default=None),)]


def queue_heads(tables: Tables, p: Params) -> list[Row]:
    found: dict[str, int] = {}
    for uid, call in tables.calls.items():
        task, lease = tables.tasks[uid], tables.leases[uid]
        is_free = task.status in ("pending", "running") and task.is_current and lease.worker is None
        is_free = is_free and task.archived_at is None and not is_stopped(tables, task.namespace, task.id)
        is_due = call.not_before is None or call.not_before <= p["now"]
        if task.namespace == p["namespace"] and is_free and is_due and _may_begin(tables, task):
            since = max(task.updated_at, call.not_before or 0)
            found[call.queue] = min(found.get(call.queue, since), since)
    return sorted(found.items(), key=lambda one: (one[1], one[0]))[: p["limit"]]


def _may_begin(tables: Tables, task: TaskRow) -> bool:
    if task.depends_on == "[]" or task.started_at is not None:
        return True
    others = [tables.current.get((task.namespace, id)) for id in json.loads(task.depends_on)]
    are_done = all(uid is not None and tables.tasks[uid].status == "completed" for uid in others)
    return task.status == "running" and are_done


def read_slots(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for (scope, _), slot in sorted(tables.slots.items()):
        if scope in json.loads(p["scopes"]):
            lease = tables.leases.get(slot.task_uid)
            holder = (lease.epoch, lease.worker) if lease is not None else (None, None)
            found.append((*slot, *holder, slot.worker in tables.workers))
    return found


def read_holding(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid, lease in sorted(tables.leases.items()):
        if lease.worker == p["worker"]:
            task, call = tables.tasks[uid], tables.calls.get(uid)
            position = max((n for line, n in tables.journal.get(uid, {}) if line == task.line), default=0)
            who = (uid, task.id, task.namespace, task.status, task.version, lease.epoch)
            lost = (call.function, call.losses, call.lost_position) if call is not None else (None, None, None)
            found.append((*who, task.line, task.seq, max(position, 0), task.updated_at, *lost, task.config))
    return found


def find_overdue(tables: Tables, p: Params) -> list[Row]:
    found = [
        (call.deadline_at, uid, tables.tasks[uid].id)
        for uid, call in tables.calls.items()
        if call.deadline_at is not None
        and call.deadline_at > p["since"]
        and tables.tasks[uid].namespace == p["namespace"]
        and tables.tasks[uid].status in _LIVE
    ]
    return [(uid, id, deadline_at) for deadline_at, uid, id in sorted(found)][: p["limit"]]


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (announce, ask_worker, reap, flag_attempt, postpone)
_VERBS += (take_slot, free_slot, stand_down)
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (
    find_claimable,
    next_start,
    queue_heads,
    read_slots,
    read_holding,
    find_overdue,
)
QUERIES = {query.__name__: query for query in _QUERIES}
