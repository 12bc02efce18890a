"""The effect of each verb; the same names and parameters as `sqlite/queries`.

Each function begins with its condition. If that does not hold, it returns None and has changed nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from perdure._model import FINISHED, GENESIS, MAY_WRITE, chain
from perdure._store.memory import memory_values as remembering
from perdure._store.memory import upkeep
from perdure._store.memory.tables import Lease, Tables, Tombstone, Worker
from perdure._store.rows import AttemptRow, EventRow, FrameRow, Params, Row, TaskRow

# ── processes ────────────────────────────────────────────────────────────────────────────────────


def register_worker(tables: Tables, p: Params) -> Row | None:
    if p["worker"] in tables.workers:
        beat(tables, p)
    else:
        names = ("host", "boot_id", "pid_ns", "pid", "pid_start", "user", "lease_ms", "at")
        tables.put(tables.workers, p["worker"], Worker(p["worker"], 0, *(p[name] for name in names)))
    return (p["worker"],)


def beat(tables: Tables, p: Params) -> Row | None:
    worker = tables.workers.get(p["worker"])
    if worker is None:
        return None
    tables.put(tables.workers, worker.id, worker._replace(beats=worker.beats + 1))
    return (worker.beats + 1,)


def forget_worker(tables: Tables, p: Params) -> Row | None:
    if p["worker"] not in tables.workers or tables.held_by(p["worker"]):
        return None
    tables.remove(tables.workers, p["worker"])
    return (p["worker"],)


# ── beginning and ending ─────────────────────────────────────────────────────────────────────────


def create_task(tables: Tables, p: Params) -> Row | None:
    if (p["namespace"], p["id"]) in tables.current or p["uid"] in tables.tasks:
        return None
    _insert(tables, p)
    return (p["uid"],)


def restart_task(tables: Tables, p: Params) -> Row | None:
    old = tables.tasks.get(p["old"])
    if old is None or not old.is_current or old.status not in FINISHED or p["uid"] in tables.tasks:
        return None
    if (old.namespace, old.id) != (p["namespace"], p["id"]):
        return None
    tables.remove(tables.current, (old.namespace, old.id))
    remembering.lay_aside(tables, old.namespace, old.id, old.uid)
    tables.put(tables.tasks, old.uid, old._replace(is_current=False))
    _insert(tables, p)
    return (old.uid,)


def _insert(tables: Tables, p: Params) -> None:
    task = TaskRow(
        uid=p["uid"],
        namespace=p["namespace"],
        id=p["id"],
        is_current=True,
        status=p["status"],
        version=0,
        line=1,
        seq=0,
        state_seq=0,
        name=p["name"],
        description=p["description"],
        agent=p["agent"],
        tags=p["tags"],
        config=p["config"],
        depends_on=p["depends_on"],
        pause_reason=None,
        pause=None,
        due_at=None,
        progress=None,
        result=None,
        error=None,
        attempts=0,
        event_count=0,
        event_head=GENESIS,
        created_at=p["at"],
        started_at=None,
        updated_at=p["at"],
        finished_at=None,
        archived_at=None,
        hidden=0,
    )
    change(tables, task, p)
    tables.put(tables.current, (task.namespace, task.id), task.uid)
    tables.put(tables.leases, task.uid, Lease(0, None, None))
    first = {"label": "", "depth": 0, "position": 0, "parent": None, "base": None, "chain_size": 0, "chain_length": 0}
    _add_checkpoint(tables, task, {**p, **first})


def archive(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.status not in FINISHED:
        return None
    return (change(tables, task, p, archived_at=p["archived_at"]).version,)


def delete_task(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.version != p["version"] or task.status not in FINISHED:
        return None
    uid, head = task.uid, (task.event_count, task.event_head)
    tombstone = Tombstone(uid, task.namespace, task.id, task.status, *head, task.created_at, p["at"], p["author"])
    tables.put(tables.tombstones, uid, tombstone)
    for table in (tables.checkpoints, tables.chunks, tables.journal, tables.attempts, tables.events, tables.leases):
        tables.remove(table, uid)
    for further in (tables.journal_ends, tables.calls, tables.pauses, tables.signals, tables.shelf, tables.deliveries):
        tables.remove(further, uid)
    remembering.forget_task(tables, task.namespace, task.id, "" if task.is_current else uid)
    if task.is_current:
        tables.remove(tables.current, (task.namespace, task.id))
    tables.remove(tables.tasks, uid)
    return (uid,)


# ── leases ───────────────────────────────────────────────────────────────────────────────────────


def claim(tables: Tables, p: Params) -> Row | None:
    task, lease = tables.tasks.get(p["uid"]), tables.leases.get(p["uid"])
    if task is None or lease is None or task.status != p["before"]:
        return None
    if (lease.epoch, lease.worker) != (p["seen_epoch"], p["seen_worker"]):
        return None
    epoch = lease.epoch + 1
    tables.put(tables.leases, task.uid, Lease(epoch, p["worker"], p["at"]))
    end_attempts(tables, task.uid, p["at"], p["former"])
    attempt = AttemptRow(epoch, p["worker"], p["host"], p["pid"], p["user"], p["agent"], p["at"], None, "")
    tables.put_of(tables.attempts, task.uid, epoch, attempt)
    started_at = p["at"] if task.started_at is None else task.started_at
    change(tables, task, p, status="running", attempts=task.attempts + 1, started_at=started_at)
    return (epoch,)


def claim_free(tables: Tables, p: Params) -> Row | None:
    params = {**p, "before": "running", "seen_worker": None, "former": "superseded", "agent": ""}
    return (p["uid"],) if claim(tables, params) else None


def release(tables: Tables, p: Params) -> Row | None:
    if not tables.may_write(p["uid"], p["epoch"], p["worker"]):
        return None
    free(tables, p["uid"])
    end_attempts(tables, p["uid"], p["at"], p["ended"])
    change(tables, tables.tasks[p["uid"]], p)
    return (p["epoch"],)


def free(tables: Tables, uid: str, *, epochs: int = 0) -> None:
    lease = tables.leases[uid]
    tables.put(tables.leases, uid, lease._replace(epoch=lease.epoch + epochs, worker=None))


def end_attempts(tables: Tables, uid: str, at: int, ended: str) -> None:
    for attempt in tables.open_attempts(uid):
        tables.put_of(tables.attempts, uid, attempt.number, attempt._replace(ended_at=at, ended=ended))


# ── an attempt's writes ──────────────────────────────────────────────────────────────────────────


def checkpoint(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.status not in MAY_WRITE or task.state_seq != p["parent"]:
        return None
    if not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    task = change(tables, task, p, seq=task.seq + 1, state_seq=task.seq + 1)
    _add_checkpoint(tables, task, p)
    return (task.seq, task.version, task.status)


def mark_progress(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.status not in MAY_WRITE or not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    tables.put(tables.tasks, task.uid, task._replace(progress=p["progress"], updated_at=p["at"]))
    return (task.version,)


def append_entry(tables: Tables, p: Params) -> Row | None:
    place = (p["line"], p["position"])
    if not tables.may_write(p["uid"], p["epoch"], p["worker"]) or place in tables.journal.get(p["uid"], {}):
        return None
    tables.put_entry(p["uid"], place, p["entry"])
    return (p["position"],)


def put_chunk(tables: Tables, p: Params) -> Row | None:
    place = (p["owner"], p["n"])
    if place in tables.chunks.get(p["uid"], {}):
        return None
    tables.put_of(tables.chunks, p["uid"], place, p["chunk_body"])
    return (p["n"],)


# ── moves ────────────────────────────────────────────────────────────────────────────────────────


def move_task(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or not task.is_current or task.status not in p["befores"].split(","):
        return None
    if p["parent"] is not None and task.state_seq != p["parent"]:
        return None
    if p["version"] is not None and task.version != p["version"]:
        return None
    if p["epoch"] is not None and not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    same = {name: p[name] for name in ("finished_at", "pause_reason", "pause", "due_at", "result", "error")}
    seqs = {"seq": task.seq + 1, "state_seq": task.seq + 1} if p["adds"] else {}
    if p["after"] == "running":
        same["archived_at"] = None
    task = change(tables, task, p, status=p["after"], **same, **seqs)
    if p["adds"]:
        _add_checkpoint(tables, task, p)
    if p["ends"]:
        free(tables, task.uid)
        end_attempts(tables, task.uid, p["at"], p["ended"])
    return (task.seq, task.version)


def rollback(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or not task.is_current or task.version != p["version"]:
        return None
    if task.status not in p["befores"].split(","):
        return None
    if p["target"] not in tables.checkpoints.get(task.uid, {}):
        return None
    entries = tables.journal.get(task.uid, {})
    if p["seen"] is not None and any(line == task.line and position > p["seen"] for line, position in entries):
        return None
    columns: dict[str, Any] = {"line": task.line + 1, "state_seq": p["target"]}
    if p["adds"]:
        columns |= {"seq": task.seq + 1, "state_seq": task.seq + 1}
    if p["after"] is not None:
        columns |= {"status": p["after"], "finished_at": None, "error": None, "archived_at": None}
        columns |= {"pause_reason": None, "pause": None, "due_at": None}
    task = change(tables, task, p, **columns)
    led_there = _lineage(tables.checkpoints[task.uid], p["target"])
    for frame in list(tables.checkpoints[task.uid].values()):
        is_past = frame.seq not in led_there
        if frame.superseded != is_past:
            tables.put_of(tables.checkpoints, task.uid, frame.seq, frame._replace(superseded=is_past))
    if p["adds"]:
        _add_checkpoint(tables, task, p)
    put_entries(tables, task.uid, task.line, p)
    forget_asked(tables, task.uid, task.line - 1)
    free(tables, task.uid, epochs=1)
    end_attempts(tables, task.uid, p["at"], "rolled back")
    return (task.seq, task.version)


def _lineage(made: Mapping[int, FrameRow], seq: int) -> set[int]:
    """The checkpoints that led to this one; where one was pruned, the one before it counts."""
    found: set[int] = set()
    at: int | None = seq
    while at is not None and at not in found:
        found.add(at)
        parent = made[at].parent
        at = None if parent is None else max((one for one in made if one <= parent), default=None)
    return found


def put_entries(tables: Tables, uid: str, line: int, p: Params) -> None:
    """The first entries of a line, which come with it."""
    for position, digits in json.loads(p["entries"]):
        if (line, position) not in tables.journal.get(uid, {}):
            tables.put_entry(uid, (line, position), bytes.fromhex(digits))


def forget_asked(tables: Tables, uid: str, line: int) -> None:
    """The line after this one asks its own questions; signals taken by this line stay taken. The outcome of an effect
    can still be asked and given."""
    left = [question for question in tables.pauses.get(uid, {}).values() if question.topic == "~effect"]
    tables.remove(tables.pauses, uid)
    for question in left:
        path = question.path if question.path.startswith("~") else f"~{line}~{question.path}"
        tables.put_of(tables.pauses, uid, path, question._replace(path=path))
    for key, signal in list(tables.signals.get(uid, {}).items()):
        if signal.taken_by is not None:
            tables.put_of(tables.signals, uid, key, signal._replace(taken_by="~"))


def invalidate(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.version != p["version"] or p["target"] not in tables.checkpoints.get(task.uid, {}):
        return None
    for seq in json.loads(p["seqs"]):
        _alter_checkpoint(tables, task.uid, seq, valid=False)
    return (change(tables, task, p, state_seq=p["target"]).version,)


# ── keeping house ────────────────────────────────────────────────────────────────────────────────


def pin(tables: Tables, p: Params) -> Row | None:
    return _alter_checkpoint(tables, p["uid"], p["target"], pinned=bool(p["pinned"]))


def rebase(tables: Tables, p: Params) -> Row | None:
    frame = tables.checkpoints.get(p["uid"], {}).get(p["target"])
    if frame is None or frame.base is None:
        return None
    same = {name: p[name] for name in ("stored", "chunks", "frame")}
    return _alter_checkpoint(tables, p["uid"], frame.seq, base=None, chain_size=0, chain_length=0, **same)


def prune(tables: Tables, p: Params) -> Row | None:
    task, frames = tables.tasks.get(p["uid"]), tables.checkpoints.get(p["uid"], {})
    frame = frames.get(p["target"])
    if task is None or frame is None or frame.pinned or frame.seq == task.state_seq:
        return None
    if any(other.base == frame.seq for other in frames.values()):
        return None
    tables.remove(frames, frame.seq)
    for place in list(tables.chunks.get(task.uid, {})):
        if place[0] == p["owner"]:
            tables.remove(tables.chunks[task.uid], place)
    return (frame.seq,)


# ── what several verbs do ────────────────────────────────────────────────────────────────────────


def change(tables: Tables, task: TaskRow, p: Params, **columns: Any) -> TaskRow:
    """The task with other columns, one version on, and with one more event at the end of its chain."""
    number, head = task.event_count + 1, chain(task.event_head, p["digest"])
    columns |= {"version": task.version + 1, "updated_at": p["at"], "event_count": number, "event_head": head}
    task = task._replace(**columns)
    tables.put(tables.tasks, task.uid, task)
    event = EventRow(number, p["at"], p["kind"], p["author"], p["body"], p["digest"], head)
    tables.put_of(tables.events, task.uid, number, event)
    return task


def _add_checkpoint(tables: Tables, task: TaskRow, p: Params) -> None:
    given = "parent base at label cause depth author size stored chain_size chain_length position chunks frame"
    same = {name: p[name] for name in given.split()}
    frame = FrameRow(seq=task.seq, line=task.line, valid=True, superseded=False, pinned=False, **same)
    tables.put_of(tables.checkpoints, task.uid, frame.seq, frame)


def _alter_checkpoint(tables: Tables, uid: str, seq: int, **columns: Any) -> Row | None:
    frame = tables.checkpoints.get(uid, {}).get(seq)
    if frame is None:
        return None
    tables.put_of(tables.checkpoints, uid, seq, frame._replace(**columns))
    return (seq,)


_ALL: tuple[Callable[[Tables, Params], Row | None], ...] = (register_worker, beat, forget_worker)
_ALL += (create_task, restart_task, archive, delete_task, claim, claim_free, release, checkpoint)
_ALL += (mark_progress, append_entry, put_chunk, move_task, rollback, invalidate, pin, rebase, prune)
VERBS = {verb.__name__: verb for verb in _ALL} | upkeep.VERBS
