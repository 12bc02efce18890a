"""What a store says, and whether all it says fits together.

`dump` is what a user could see of a store, without names and times that differ from run to run: two
stores that went through the same calls have equal dumps. `check_rows` compares rows that one verb
writes together: if a verb was ever written in part, some of them disagree.
"""

from __future__ import annotations

from typing import Any

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._model import AFTER, FINISHED, Entry, Link, open_entry, verify
from perdure._store import AttemptRow, EventRow, FrameRow, HolderRow, Store, TaskRow
from perdure.types import TaskRecord

_STATUS_BY_EVENT = {
    "attempt started": "running",
    "attempt taken over": "running",
    "paused": "paused",
    "resumed": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


# ── what a user can see ──────────────────────────────────────────────────────────────────────────


def dump(app: Perdure) -> dict[str, Any]:
    return drive(_dump(app))


async def _dump(app: Perdure) -> dict[str, Any]:
    ids = sorted(record.id for record in await app.tasks.list(limit=1000, archived=True))
    seen: dict[str, Any] = {}
    for id in ids:
        history = await app.tasks.history(id)
        seen[id] = [await _view(app, record) for record in history]
    gone = await app._store.query("read_tombstones", namespace=app._store.namespace)
    return {"tasks": seen, "deleted": sorted((row[2], row[3], row[4]) for row in gone)}


async def _view(app: Perdure, record: TaskRecord) -> dict[str, Any]:
    store = app._store
    checkpoints = [FrameRow(*row) for row in await _all(store, "read_checkpoints", record.uid, -1)]
    events = [EventRow(*row) for row in await _all(store, "read_events", record.uid, 0)]
    holder = HolderRow(*(await store.query("read_holder", uid=record.uid))[0])
    return {
        "status": record.status,
        "state": record.state,
        "version": record.version,
        "latest": record.latest and (record.latest.seq, record.latest.data, record.latest.label),
        "pause": record.pause and (record.pause.reason, record.pause.message),
        "error": record.error,
        "result": record.result,
        "progress": record.progress and (record.progress.operation, record.progress.done, record.progress.total),
        "is_finished": record.finished_at is not None,
        "is_archived": record.archived_at is not None,
        "attempts": [(attempt.number, attempt.ended) for attempt in record.attempts],
        "checkpoints": [
            (c.seq, c.line, c.parent, c.cause, c.label, c.valid, c.superseded, c.pinned) for c in checkpoints
        ],
        "events": [(event.kind, _unnamed(store.unseal(record.uid, "event", event.body))) for event in events],
        "lease": (holder.epoch, holder.worker is not None),
    }


def _unnamed(data: Any) -> Any:
    return {key: value for key, value in data.items() if key != "uid"} if isinstance(data, dict) else data


# ── whether it fits together ─────────────────────────────────────────────────────────────────────


def check_rows(app: Perdure) -> None:
    """Every task's status, events, attempts, checkpoints and lease tell the same story."""
    drive(_check_rows(app._store))


async def _check_rows(store: Store) -> None:
    params = {"status": None, "reason": None, "agent": None, "tags": "{}", "since": None, "cursor": None}
    rows = await store.query("list_tasks", namespace=store.namespace, **params, archived=1, limit=1 << 31)
    for current in rows:
        for row in await store.query("get_history", namespace=store.namespace, id=TaskRow(*current).id):
            await _check_task(store, TaskRow(*row))


async def _check_task(store: Store, task: TaskRow) -> None:
    events = [EventRow(*row) for row in await _all(store, "read_events", task.uid, 0)]
    frames = [FrameRow(*row) for row in await _all(store, "read_checkpoints", task.uid, -1)]
    attempts = [AttemptRow(*row) for row in await store.query("read_attempts", uid=task.uid)]
    held = await store.query("read_holder", uid=task.uid)
    assert held, f"{task.id} has no lease"
    holder = HolderRow(*held[0])
    kinds = [event.kind for event in events]

    links = [_link(store, task.uid, event) for event in events]
    found = verify(task.uid, links, task.event_count, task.event_head)
    assert found.broken_at is None, f"{task.id}: {found.problem}"

    status = "pending" if task.status == "pending" else "running"
    for kind in kinds:
        status = _STATUS_BY_EVENT.get(kind, status)
    assert task.status == status, f"{task.id} is {task.status}, and its events say {status}: {kinds}"

    assert [frame.seq for frame in frames] == list(range(task.seq + 1)), f"{task.id}: checkpoints have gaps"
    assert task.state_seq <= task.seq
    made = [frame.cause for frame in frames if frame.cause.partition(" ")[0] in ("explicit", "span", "append")]
    assert len(made) == kinds.count("checkpoint"), f"{task.id}: {made}, {kinds}"

    started = kinds.count("attempt started") + kinds.count("attempt taken over")
    # A task that app.run begins is created together with its first attempt, and one event tells of both.
    told = [codec.decode(link.body) for link in links if link.kind.startswith("attempt ")]
    started += bool(attempts) and all(data.get("epoch") != 1 for data in told)
    assert task.attempts == len(attempts) == started, f"{task.id}: {attempts}, {kinds}"
    going = [attempt for attempt in attempts if attempt.ended_at is None]
    assert len(going) == (holder.worker is not None), f"{task.id}: {len(going)} attempts go on, holder {holder.worker}"

    assert (task.status == "paused") == (task.pause_reason is not None) == (task.pause is not None)
    assert (task.status in FINISHED) == (task.finished_at is not None)
    assert task.status not in FINISHED or holder.worker is None, f"{task.id} has ended and somebody holds its lease"
    assert (task.status == "failed") == (task.error is not None)

    entries = await store.query("read_journal", uid=task.uid, line=task.line)
    places = [position for position, _ in entries]
    first = 0 if places[:1] == [0] else 1  # durable functions count from 1
    is_copy = any(AFTER in (entry.note or {}) for entry in _decoded(store, task, entries))  # of a line with gaps
    assert is_copy or places == list(range(first, first + len(places))), f"{task.id}: its journal has a hole"


def _decoded(store: Store, task: TaskRow, rows: list[Any]) -> list[Entry]:
    return [open_entry(sealed, task.uid, position, store.ring) for position, sealed in rows]


async def _all(store: Store, query: str, uid: str, after: int) -> list[Any]:
    return list(await store.query(query, uid=uid, after=after, limit=1 << 31))


def _link(store: Store, uid: str, event: EventRow) -> Link:
    body = envelope.unseal(event.body, kind="event", bound_to=uid, ring=store.ring)
    return Link(event.number, event.at, event.kind, event.author, body, bytes(event.digest), bytes(event.hash))
