"""A task on its way to another store: all its rows, as plain data, and the end it has here.

A task that is moved ends here first (`leave`): its lease is gone, so no attempt can write for it or resume it. Only
then are its rows exported, and the importing store starts it again. So whichever process dies in between, it never runs
in two places.

Owns which rows belong to a task, and what becomes of them elsewhere. The file they travel in is in
perdure/_runtime/bundles/bundle_file.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from perdure._ground.config import Address
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id, new_uid
from perdure._ground.secrets import envelope
from perdure._model import FINISHED, GENESIS, Link, Pause, chain, make_pause
from perdure._model import verify as walk
from perdure._store import EventRow, Store, TaskRow, share
from perdure._tasks import leases
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.task import Task
from perdure._tasks.task_row import current_row
from perdure._tasks.upkeep.task_rows import Departure
from perdure._tasks.values import bound_to
from perdure.errors import AlreadyExists, InvalidInput, InvalidTransition, KeyMissing, PerdureError, RecordDamaged

Rows = dict[str, list[dict[str, Any]]]
TABLES = (
    "tasks", "checkpoints", "chunks", "attempts", "events", "journal", "calls", "pauses", "signals", "shelf",
    "deliveries", "leases", "memory",
)  # fmt: skip
LEFT, CAME = "moved away", "imported"
_COLUMNS_OF_LIFE = ("status", "pause_reason", "pause", "due_at", "error", "finished_at")


async def leave(task: Task) -> None:
    """End the task here, so that it can go on elsewhere. Doing so again changes nothing.

    Raises:
        LeaseHeld: an attempt is alive; stop it first.
        InvalidTransition: it has ended otherwise.
    """
    while not await _try_to_leave(task):
        pass  # changed by another process meanwhile, so look again


async def _try_to_leave(task: Task) -> bool:
    store = task._store
    row = await current_row(store, task.id, task.uid)
    if row.status in FINISHED and row.status != "failed":
        if await has_left(task):
            return True
        raise InvalidTransition(task.id, row.status, "be moved", do="export it without --move: it goes on nowhere")
    if row.status == "running":
        await leases.take(
            store, task.id, task.uid, task._agent
        )  # or another process is working on it, and the error says which
        row = await current_row(store, task.id, task.uid)
    before = {name: getattr(row, name) for name in _COLUMNS_OF_LIFE}
    hold = leases.held(store, task.uid)
    return await moves.try_move(task, "leave", hold=hold, ended="moved", data=before, ends=True, version=row.version)


async def has_left(task: Task) -> bool:
    rows = await dump(task._store, task.uid)
    return bool(rows["events"]) and rows["events"][-1]["kind"] == LEFT


async def dump(store: Store, uid: str) -> Rows:
    """Every row the task has, in the form in which they travel."""
    rows: Rows = {table: [] for table in TABLES}
    for table, told in await store.query("dump_task", uid=uid):
        rows[table].append({name: _plain(value) for name, value in json.loads(told).items()})
    rows["events"].sort(key=lambda event: event["number"])
    rows["checkpoints"].sort(key=lambda checkpoint: checkpoint["seq"])
    return rows


def _plain(value: object) -> Any:
    """The same on every engine: 1 for true, bytes in small letters."""
    if isinstance(value, bool):
        return int(value)
    return value.lower() if isinstance(value, str) and value.startswith("\\x") else value


def payload(value: str) -> bytes:
    """The bytes of a column."""
    return bytes.fromhex(value[2:])


def shown(data: bytes) -> str:
    return f"\\x{data.hex()}"


# ── taking in ────────────────────────────────────────────────────────────────────────────────────


async def take_in(store: Store, rows: Rows, *, origin: Mapping[str, Any], paths: Mapping[str, str]) -> str:
    """Import the task in one write; returns its id. It continues if it has left its former store.

    A copy of a task that may still be running elsewhere is imported paused: a person has to confirm that it is not. So
    is a task whose `origin` is not trusted, because it would call functions of this machine.

    Raises:
        RecordDamaged, KeyMissing: its events are not what they were, or cannot be read; nothing was written.
        AlreadyExists: its id, or the task itself, is here.
    """
    (task,) = rows["tasks"]
    uid, id = task["uid"], check_id(task["id"])
    left = check_history(store, rows)
    now = store.clock.now_ms()
    if left is not None:
        before = msgspec.structs.asdict(left)
        task.update({name: shown(value) if isinstance(value, bytes) else value for name, value in before.items()})
    if task["status"] in ("pending", "running") or (left is None and task["status"] not in FINISHED):
        where = origin.get("host") or "another host"
        if left is None:
            _pause(
                store, task, f"This is a copy. The task may still be going on on {where}: resume it only if it is not."
            )
        elif not origin.get("trusted", True):
            _pause(store, task, f"The bundle it came in, from {where}, is not signed: resume it only if you trust it.")
    _rebind(store, rows, task["namespace"])
    task.update(namespace=store.namespace, is_current=1, archived_at=None, updated_at=now, version=task["version"] + 1)
    for attempt in rows["attempts"]:
        if attempt["ended_at"] is None:
            attempt.update(ended_at=now, ended="moved to another store")
    for call in rows["calls"]:
        call["parent_uid"] = None  # which is not here
    for lease in rows["leases"]:
        lease.update(epoch=lease["epoch"] + 1, worker=None, taken_at=None)
    _add_event(store, rows, {**origin, "paths": dict(paths), "copy": left is None})
    params = {table: json.dumps(rows[table]) for table in TABLES}
    if await store.verb("import_task", uid, params, key=id) is None:
        there = await store.row(TaskRow, "get_task", namespace=store.namespace, id=id)
        raise AlreadyExists(id, there.status if there is not None else "known by its uid")
    return str(id)


async def rehearse(store: Store, rows: Rows, *, origin: Mapping[str, Any], paths: Mapping[str, str]) -> None:
    """Take the task into a store in memory and read it there as every listing does.

    Raises:
        RecordDamaged: it could not be shown, and would hide others on the same page; nothing was written.
    """
    from perdure._tasks.tasks import Tasks

    name = f"rehearsal-{new_uid(store.clock.now_ms())}"
    stage = Store(share(Address("memory", name)), store.ring, store.namespace)
    tasks = Tasks(stage)
    try:
        id = await take_in(stage, copy.deepcopy(rows), origin=origin, paths=paths)
        await tasks.list()
        with suppress(KeyMissing, InvalidInput):  # a class that only the code knows; told as such when it is read
            await tasks.handle(id)
            await tasks.events(id)
    except PerdureError as error:
        raise RecordDamaged("the task", error.what, kept="the store as it was") from error
    except Exception as error:
        problem = f"it cannot be listed: {type(error).__name__}"
        raise RecordDamaged("the task", problem, kept="the store as it was") from error
    finally:
        await stage.close()


def check_history(store: Store, rows: Rows) -> Departure | None:
    """Walk the task's chain of events; if it has left, return its state before that.

    Raises:
        RecordDamaged: an event was changed, removed or added.
        KeyMissing: an event is sealed with a key that is not here.
    """
    (task,) = rows["tasks"]
    uid = task["uid"]
    links, left = [], None
    for event in rows["events"]:
        body = envelope.unseal(payload(event["body"]), kind="event", bound_to=uid, ring=store.ring)
        hashes = (payload(event["digest"]), payload(event["hash"]))
        links.append(Link(event["number"], event["at"], event["kind"], event["author"], body, *hashes))
        left = _departure(body) if event["kind"] == LEFT else None
    found = walk(uid, links, task["event_count"], payload(task["event_head"]))
    if found.broken_at is not None:
        raise RecordDamaged(f"the history of task {task['id']!r}", found.problem, kept="the store as it was")
    return left


def _departure(body: bytes) -> Departure:
    try:
        return msgspec.convert(codec.decode(body), Departure)
    except msgspec.ValidationError as error:
        raise RecordDamaged("the event of a task that has left", str(error)) from None


def _pause(store: Store, task: dict[str, Any], message: str) -> None:
    author = json.loads(store.presence.author())
    pause = make_pause("checkpoint", message, {}, store.clock.now_ms(), author)
    sealed = store.seal(task["uid"], "pause", pause, Pause)
    task.update(status="paused", pause_reason="checkpoint", pause=shown(sealed), due_at=None)


def _rebind(store: Store, rows: Rows, namespace: str) -> None:
    """Values of memory layers are bound to their namespace: under another one they are sealed again."""
    for kept in rows["memory"]:
        old, new = bound_to(namespace, kept["key"]), bound_to(store.namespace, kept["key"])
        kept["namespace"] = store.namespace
        if old != new:
            data = payload(kept["value"])
            kind = envelope.kind_of(data)
            plain = envelope.unseal(data, kind=kind, bound_to=old, ring=store.ring)
            kept["value"] = shown(envelope.seal(plain, kind=kind, bound_to=new, ring=store.ring))


def _add_event(store: Store, rows: Rows, data: Mapping[str, Any]) -> None:
    (task,) = rows["tasks"]
    event = store.event(task["uid"], CAME, dict(data))
    head = chain(payload(task["event_head"]) if task["event_count"] else GENESIS, event["digest"])
    task.update(event_count=task["event_count"] + 1, event_head=shown(head))
    told = {name: event[name] for name in ("at", "kind", "author")}
    rows["events"].append(
        {
            "task_uid": task["uid"],
            "number": task["event_count"],
            **told,
            "body": shown(event["body"]),
            "digest": shown(event["digest"]),
            "hash": shown(head),
        }
    )


async def arrival(store: Store, uid: str) -> Mapping[str, Any] | None:
    """The event data of the task's last import from another store; None if it was never imported."""
    found: Mapping[str, Any] | None = None
    for row in await store.rows(EventRow, "read_events", uid=uid, after=0, limit=1 << 31):
        if row.kind == CAME:
            try:
                found = store.unseal(uid, "event", row.body)
            except (KeyMissing, RecordDamaged):
                continue
    return found
