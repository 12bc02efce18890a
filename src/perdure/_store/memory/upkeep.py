"""Reads and writes of gc, audit and key rotation; the same names and parameters as `sqlite/queries`."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from perdure._model import FINISHED
from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row

_HEAD = 300
_TASK_COLUMNS = ("config", "pause", "progress", "result", "error")

# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def list_all(tables: Tables, p: Params) -> list[Row]:
    wanted = (row for row in tables.tasks.values() if p["namespace"] in (None, row.namespace) and row.uid > p["after"])
    in_order: list[Row] = sorted(wanted, key=attrgetter("uid"))
    return in_order[: p["limit"]]


def read_outline(tables: Tables, p: Params) -> list[Row]:
    frames = sorted(tables.checkpoints.get(p["uid"], {}).items())
    return [frame if frame.chunks else frame._replace(frame=b"") for _, frame in frames]


def read_frame(tables: Tables, p: Params) -> list[Row]:
    frames = tables.checkpoints.get(p["uid"], {})
    return [frames[p["target"]]] if p["target"] in frames else []


def read_entry(tables: Tables, p: Params) -> list[Row]:
    entry = tables.journal.get(p["uid"], {}).get((p["line"], p["position"]))
    return [] if entry is None else [(entry,)]


def read_orphans(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid, chunks in sorted(tables.chunks.items()):
        for owner in sorted({owner for owner, _ in chunks if owner < p["before"]}):
            if not _is_named(tables, uid, owner):
                bodies = [body for (name, _), body in chunks.items() if name == owner]
                lease = tables.leases.get(uid)
                holder = (lease.worker, lease.taken_at) if lease is not None else (None, None)
                found.append((uid, owner, len(bodies), sum(map(len, bodies)), *holder))
    return found


def read_held(tables: Tables, p: Params) -> list[Row]:
    held = [(uid, lease.worker) for uid, lease in sorted(tables.leases.items()) if lease.worker is not None]
    tasks = [(worker, tables.tasks[uid]) for uid, worker in held if uid in tables.tasks]
    return [(worker, task.uid, task.namespace, task.id, task.status) for worker, task in tasks]


def read_migrations(tables: Tables, p: Params) -> list[Row]:
    return []


def heads_of_tasks(tables: Tables, p: Params) -> list[Row]:
    rows = [row for uid, row in sorted(tables.tasks.items()) if uid > p["uid"]]
    return [(row.uid, *(_head(getattr(row, name)) for name in _TASK_COLUMNS)) for row in rows][: p["limit"]]


def heads_of_checkpoints(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid, frames in sorted(tables.checkpoints.items()):
        for seq, frame in sorted(frames.items()):
            first = tables.chunks.get(uid, {}).get((frame.frame.decode(), 0)) if frame.chunks else frame.frame
            found.append((uid, seq, _head(first)))
    return _after(found, (p["uid"], p["number"]), p["limit"])


def heads_of_events(tables: Tables, p: Params) -> list[Row]:
    found = [(uid, row.number, _head(row.body)) for uid, rows in tables.events.items() for row in rows.values()]
    return _after(found, (p["uid"], p["number"]), p["limit"])


def heads_of_entries(tables: Tables, p: Params) -> list[Row]:
    found = [(uid, *place, _head(entry)) for uid, rows in tables.journal.items() for place, entry in rows.items()]
    return _after(found, (p["uid"], p["line"], p["number"]), p["limit"])


def heads_of_calls(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = [(uid, _head(call.arguments), _head(call.budget)) for uid, call in tables.calls.items()]
    return _after(found, (p["uid"],), p["limit"])


def heads_of_pauses(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = [
        (uid, path, _head(row.question), _head(row.answer))
        for uid, rows in tables.pauses.items()
        for path, row in rows.items()
    ]
    return _after(found, (p["uid"], p["path"]), p["limit"])


def heads_of_signals(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = [
        (uid, *place, _head(row.value)) for uid, rows in tables.signals.items() for place, row in rows.items()
    ]
    return _after(found, (p["uid"], p["signal"], p["number"]), p["limit"])


def sealed_call(tables: Tables, p: Params) -> list[Row]:
    call = tables.calls.get(p["uid"])
    return [] if call is None else [(call.arguments, call.budget)]


def sealed_pause(tables: Tables, p: Params) -> list[Row]:
    question = tables.pauses.get(p["uid"], {}).get(p["path"])
    return [] if question is None else [(question.question, question.answer)]


def sealed_signal(tables: Tables, p: Params) -> list[Row]:
    signal = tables.signals.get(p["uid"], {}).get((p["signal"], p["number"]))
    return [] if signal is None else [(signal.value,)]


def read_children(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid, call in tables.calls.items():
        child, parent = tables.tasks[uid], tables.tasks.get(call.parent_uid)
        is_waited_for = parent is not None and parent.status not in FINISHED
        if child.namespace == p["namespace"] and child.status in FINISHED and is_waited_for:
            found.append((uid,))
    return found


def children_of(tables: Tables, p: Params) -> list[Row]:
    children = sorted(uid for uid, call in tables.calls.items() if call.parent_uid == p["uid"])
    return [(uid, tables.tasks[uid].id, tables.tasks[uid].status) for uid in children]


def _after(rows: list[Row], place: Row, limit: int) -> list[Row]:
    width = len(place)
    return sorted((row for row in rows if row[:width] > place), key=lambda row: row[:width])[:limit]


def _head(data: bytes | None) -> bytes | None:
    return None if data is None else data[:_HEAD]


def _is_named(tables: Tables, uid: str, owner: str) -> bool:
    frames = tables.checkpoints.get(uid, {}).values()
    return any(frame.chunks and frame.frame == owner.encode() for frame in frames)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def drop_chunks(tables: Tables, p: Params) -> Row | None:
    if _is_named(tables, p["uid"], p["owner"]):
        return None
    return _drop(tables, p["uid"], p["owner"])


def reseal_task(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or any(getattr(task, name) != p[f"old_{name}"] for name in _TASK_COLUMNS):
        return None
    tables.put(tables.tasks, task.uid, task._replace(**{name: p[name] for name in _TASK_COLUMNS}))
    return (task.uid,)


def reseal_checkpoint(tables: Tables, p: Params) -> Row | None:
    frame = tables.checkpoints.get(p["uid"], {}).get(p["target"])
    if frame is None or frame.frame != p["old_frame"]:
        return None
    same = {name: p[name] for name in ("frame", "stored", "chunks")}
    tables.put_of(tables.checkpoints, p["uid"], frame.seq, frame._replace(**same))
    _drop(tables, p["uid"], p["old_owner"])
    return (frame.seq,)


def reseal_event(tables: Tables, p: Params) -> Row | None:
    event = tables.events.get(p["uid"], {}).get(p["number"])
    if event is None or event.body != p["old_body"]:
        return None
    tables.put_of(tables.events, p["uid"], event.number, event._replace(body=p["body"]))
    return (event.number,)


def reseal_entry(tables: Tables, p: Params) -> Row | None:
    place = (p["line"], p["position"])
    if tables.journal.get(p["uid"], {}).get(place) != p["old_entry"]:
        return None
    tables.put_of(tables.journal, p["uid"], place, p["entry"])
    return (p["position"],)


def reseal_call(tables: Tables, p: Params) -> Row | None:
    call = tables.calls.get(p["uid"])
    if call is None or (call.arguments, call.budget) != (p["old_arguments"], p["old_budget"]):
        return None
    tables.put(tables.calls, p["uid"], call._replace(arguments=p["arguments"], budget=p["budget"]))
    return (p["uid"],)


def reseal_pause(tables: Tables, p: Params) -> Row | None:
    question = tables.pauses.get(p["uid"], {}).get(p["path"])
    if question is None or (question.question, question.answer) != (p["old_question"], p["old_answer"]):
        return None
    new = question._replace(question=p["question"], answer=p["answer"])
    tables.put_of(tables.pauses, p["uid"], question.path, new)
    return (question.path,)


def reseal_signal(tables: Tables, p: Params) -> Row | None:
    place = (p["signal"], p["number"])
    signal = tables.signals.get(p["uid"], {}).get(place)
    if signal is None or signal.value != p["old_value"]:
        return None
    tables.put_of(tables.signals, p["uid"], place, signal._replace(value=p["value"]))
    return (signal.number,)


def _drop(tables: Tables, uid: str, owner: str) -> Row | None:
    places = [place for place in tables.chunks.get(uid, {}) if place[0] == owner]
    for place in places:
        tables.remove(tables.chunks[uid], place)
    return (owner,) if places else None


_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (list_all, read_outline, read_frame, read_entry)
_QUERIES += (read_orphans, read_held, read_migrations, children_of)
_QUERIES += (heads_of_tasks, heads_of_checkpoints, heads_of_events, heads_of_entries)
_QUERIES += (heads_of_calls, heads_of_pauses, heads_of_signals, sealed_call, sealed_pause, sealed_signal, read_children)
QUERIES = {query.__name__: query for query in _QUERIES}
_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (drop_chunks, reseal_task, reseal_checkpoint)
_VERBS += (reseal_event, reseal_entry, reseal_call, reseal_pause, reseal_signal)
VERBS = {verb.__name__: verb for verb in _VERBS}
