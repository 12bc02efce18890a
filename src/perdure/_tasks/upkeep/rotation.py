"""Seal every record anew under the current key, so that an old key can be thrown away.

Each record names its key in its header. Records under another key than the current one are opened and sealed again, a
few at a time, while tasks run: a record written meanwhile is left as it is and found by the next walk. If it stops
half-way, the store has records under both keys, and a later call continues where this one ended. Digests of events are
of their plain bodies, so the audit chain holds.

Owns the list of sealed columns. perdure/_ground/secrets/envelope.py seals.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from perdure._ground import crash_points as crash
from perdure._ground.bridge import Call
from perdure._ground.secrets import envelope
from perdure._store import EventRow, FrameRow, MemoryRow, Row, Store, TaskRow, ValueRow, Write
from perdure._tasks.state import snapshots
from perdure._tasks.task_walk import PAGE, SLICE, has_functions, has_memory, has_shelf, has_webhooks, in_slices
from perdure._tasks.upkeep.steps import NO_STEPS, Steps, StopUpkeep, Tell
from perdure._tasks.values import bound_to
from perdure._tasks.webhooks import bound_to as hook_bound_to
from perdure.errors import KeyMissing, RecordDamaged

# How often the whole store is walked for records written under an old key meanwhile.
_WALKS = 3
NO_KEY = ""  # in counts: records that are not sealed

_TASK_COLUMNS = ("config", "pause", "progress", "result", "error")


class Stuck(NamedTuple):
    """A record that stays under its old key, and why."""

    uid: str  # of the task, or what else owns it
    record: str
    why: str


@dataclass(slots=True)
class Rotation:
    """The result of a rotation. Old keys that no record names any more can be deleted."""

    key: str  # the current one; empty when records are no longer sealed
    resealed: int = 0
    in_use: dict[str, int] = field(default_factory=dict)
    stuck: list[Stuck] = field(default_factory=list)
    stopped: bool = False  # by `tell`; the rest keeps its key until a later run

    @property
    def is_done(self) -> bool:
        return not self.stopped and set(self.in_use) <= {self.key}


class _Sealed(NamedTuple):
    """A record by its header, and its place in the store."""

    uid: str
    place: tuple[Any, ...]
    heads: tuple[bytes | None, ...]


async def keys_in_use(store: Store) -> dict[str, int]:
    """The number of records that each key seals, in all namespaces; NO_KEY counts those that are not sealed."""
    counts: dict[str, int] = {}
    for kind in await _kinds(store):
        async for found in _walk(store, kind):
            for head in found.heads:
                if head is not None:
                    name = _key_of(head)
                    counts[name] = counts.get(name, 0) + 1
    return counts


async def rotate(store: Store, *, tell: Tell | None = None) -> Rotation:
    """Seal all records of all namespaces under the ring's current key, or under none if it has none.

    A record that cannot be opened, because it is damaged or its key is not here, is named and left as it is. `tell` is
    called for every page of records, and stops the work by returning False (steps.py).
    """
    target = store.ring.current.id if store.ring.current else NO_KEY
    rotation = Rotation(target)
    try:
        await _rotate(store, rotation, Steps(tell))
    except StopUpkeep:
        rotation.stopped = True
    return rotation


async def _rotate(store: Store, rotation: Rotation, steps: Steps) -> None:
    target = rotation.key
    for _ in range(_WALKS):
        rotation.stuck.clear()
        for kind in await _kinds(store):
            await _reseal_all(store, kind, rotation, steps)
        rotation.in_use = await keys_in_use(store)
        if rotation.is_done or len(rotation.stuck) >= sum(rotation.in_use.values()) - rotation.in_use.get(target, 0):
            break


async def unreadable(store: Store, steps: Steps = NO_STEPS) -> AsyncIterator[Stuck]:
    """Each damaged record, in all namespaces, apart from checkpoints and events: doctor.py and audit.py read those as a
    whole. Records sealed under a key that is not here cannot be checked."""
    for kind in await _kinds(store):
        if kind.name in ("checkpoint", "event"):
            continue
        async for found in _walk(store, kind, steps):
            try:
                await kind.reseal(store, found)  # opens it; nothing is written
            except KeyMissing:
                continue
            except RecordDamaged as error:
                yield Stuck(found.uid, _name(kind, found), error.what)


async def places_of_entries(store: Store) -> AsyncIterator[tuple[str, int, int]]:
    """Task, line and position of each entry of a journal."""
    async for found in _walk(store, _ENTRY_KIND):
        line, position = found.place
        yield found.uid, line, position


def _name(kind: _Kind, found: _Sealed) -> str:
    return f"{kind.name} {found.uid}{''.join(f'.{part}' for part in found.place)}"


def _key_of(head: bytes) -> str:
    try:
        return envelope.key_id(head) or NO_KEY
    except RecordDamaged:
        return "(damaged)"


async def _reseal_all(store: Store, kind: _Kind, rotation: Rotation, steps: Steps) -> None:
    batch: list[Write] = []
    async for found in _walk(store, kind, steps):
        if all(head is None or _key_of(head) == rotation.key for head in found.heads):
            continue
        try:
            batch += await kind.reseal(store, found)
        except (KeyMissing, RecordDamaged) as error:
            rotation.stuck.append(Stuck(found.uid, _name(kind, found), error.what))
        if len(batch) >= SLICE or sum(write.size for write in batch) > snapshots.CHUNK:
            rotation.resealed += await _commit(store, batch)
            batch = []
    rotation.resealed += await _commit(store, batch)


async def _commit(store: Store, batch: list[Write]) -> int:
    crash.place("rotation.slice")
    answers = await in_slices(store, batch)
    return sum(answer is not None for answer in answers)


def _again(store: Store, uid: str, data: bytes, place: int = 0) -> bytes:
    """The same record under the current key."""
    kind = envelope.kind_of(data)
    payload = envelope.unseal(data, kind=kind, bound_to=uid, ring=store.ring, place=place)
    # A delta's new bytes are packed already.
    return envelope.seal(payload, kind, uid, store.ring, compress=kind != "delta", place=place)


# ── what is sealed ───────────────────────────────────────────────────────────────────────────────


class _Kind(NamedTuple):
    name: str
    heads: str  # the query that gives uid, place and the beginnings of the sealed bytes
    cursor: Mapping[str, Any]  # what follows the uid in a place, and what comes before all of it
    reseal: Callable[[Store, _Sealed], Awaitable[list[Write]]]


async def _kinds(store: Store) -> tuple[_Kind, ...]:
    kinds = _KINDS + _FUNCTION_KINDS if await has_functions(store) else _KINDS
    kinds = (*kinds, _VALUE_KIND) if await has_shelf(store) else kinds
    kinds = (*kinds, _MEMORY_KIND) if await has_memory(store) else kinds
    return kinds + _HOOK_KINDS if await has_webhooks(store) else kinds


async def _walk(store: Store, kind: _Kind, steps: Steps = NO_STEPS) -> AsyncIterator[_Sealed]:
    width = 1 + len(kind.cursor)
    after: Mapping[str, Any] = {"uid": "", **kind.cursor}
    while page := await store.query(kind.heads, **after, limit=PAGE):
        for row in page:
            yield _Sealed(row[0], tuple(row[1:width]), tuple(row[width:]))
        after = dict(zip(("uid", *kind.cursor), page[-1][:width], strict=True))
        steps.take(kind.name, count=len(page))


async def _reseal_task(store: Store, found: _Sealed) -> list[Write]:
    rows = await store.rows(TaskRow, "get_task_by_uid", uid=found.uid)
    old = {name: getattr(row, name) for row in rows for name in _TASK_COLUMNS}
    return _columns(store, "reseal_task", found.uid, old)


async def _reseal_checkpoint(store: Store, found: _Sealed) -> list[Write]:
    (seq,) = found.place
    row = await store.row(FrameRow, "read_frame", uid=found.uid, target=seq)
    if row is None:
        return []
    old = await snapshots.sealed_frame(store, found.uid, row)
    sealed = await Call(lambda: _again(store, found.uid, old))
    frame = snapshots._frame(store, sealed, row.size, 0, row.base, (0, 0, 0))
    params = {
        "target": seq,
        "frame": frame.frame,
        "stored": frame.stored,
        "chunks": frame.chunks,
        "old_frame": row.frame,
        "old_owner": snapshots.owner_of(found.uid, row),
    }
    await snapshots.put_chunks(store, found.uid, frame, found.uid)
    return [_write(store, "reseal_checkpoint", found.uid, params)]


async def _reseal_event(store: Store, found: _Sealed) -> list[Write]:
    (number,) = found.place
    event = await store.row(EventRow, "read_events", uid=found.uid, after=number - 1, limit=1)
    old = {"body": event.body} if event is not None and event.number == number else {}
    return _columns(store, "reseal_event", found.uid, old, number=number)


async def _reseal_entry(store: Store, found: _Sealed) -> list[Write]:
    line, position = found.place
    rows = await store.query("read_entry", uid=found.uid, line=line, position=position)
    return _columns(store, "reseal_entry", found.uid, _named(rows, "entry"), line=line, position=position)


async def _reseal_call(store: Store, found: _Sealed) -> list[Write]:
    rows = await store.query("sealed_call", uid=found.uid)
    return _columns(store, "reseal_call", found.uid, _named(rows, "arguments", "budget"))


async def _reseal_pause(store: Store, found: _Sealed) -> list[Write]:
    (path,) = found.place
    rows = await store.query("sealed_pause", uid=found.uid, path=path)
    return _columns(store, "reseal_pause", found.uid, _named(rows, "question", "answer"), path=path)


async def _reseal_signal(store: Store, found: _Sealed) -> list[Write]:
    name, number = found.place
    rows = await store.query("sealed_signal", uid=found.uid, signal=name, number=number)
    return _columns(store, "reseal_signal", found.uid, _named(rows, "value"), signal=name, number=number)


async def _reseal_value(store: Store, found: _Sealed) -> list[Write]:
    kind, key = found.place
    row = await store.row(ValueRow, "get_value", uid=found.uid, kind=kind, key=key)
    old = {"value": row.value} if row is not None else {}
    return _columns(store, "reseal_value", found.uid, old, kind=kind, key=key)


async def _reseal_memory(store: Store, found: _Sealed) -> list[Write]:
    """Its uid is a namespace; memory_values.py says what it is bound to."""
    life, key = found.place
    row = await store.row(MemoryRow, "get_memory", namespace=found.uid, life=life, key=key)
    if row is None:
        return []
    old = row.value
    new = _again(store, bound_to(found.uid, key), old)
    return [_write(store, "reseal_memory", found.uid, {"life": life, "key": key, "value": new, "old_value": old})]


async def _reseal_webhook(store: Store, found: _Sealed) -> list[Write]:
    """Its uid is a namespace."""
    (id,) = found.place
    rows = await store.query("sealed_webhook", uid=found.uid, id=id)
    if not rows:
        return []
    ((old,),) = rows
    new = _again(store, hook_bound_to(found.uid, id), old)
    return [_write(store, "reseal_webhook", found.uid, {"id": id, "record": new, "old_record": old})]


async def _reseal_delivery(store: Store, found: _Sealed) -> list[Write]:
    """Its uid is a message's id."""
    rows = await store.query("sealed_delivery", uid=found.uid)
    return _columns(store, "reseal_delivery", found.uid, _named(rows, "body", "answer"))


def _named(rows: list[Row], *names: str) -> dict[str, bytes | None]:
    return dict(zip(names, rows[0], strict=True)) if rows else {}


def _columns(store: Store, verb: str, uid: str, old: Mapping[str, bytes | None], **place: Any) -> list[Write]:
    """The verb that seals these columns of one row anew; none when the row is gone."""
    if not old:
        return []
    at = place.get("position", 0)  # only entries have one
    new = {name: None if data is None else _again(store, uid, data, at) for name, data in old.items()}
    return [_write(store, verb, uid, {**place, **new, **{f"old_{name}": data for name, data in old.items()}})]


def _write(store: Store, verb: str, uid: str, params: dict[str, Any]) -> Write:
    return store.verb(verb, uid, params, key=uid)


_ENTRY_KIND = _Kind("entry", "heads_of_entries", {"line": -1, "number": -1}, _reseal_entry)
_KINDS = (
    _Kind("task", "heads_of_tasks", {}, _reseal_task),
    _Kind("checkpoint", "heads_of_checkpoints", {"number": -1}, _reseal_checkpoint),
    _Kind("event", "heads_of_events", {"number": -1}, _reseal_event),
    _ENTRY_KIND,
)
_FUNCTION_KINDS = (
    _Kind("call", "heads_of_calls", {}, _reseal_call),
    _Kind("pause", "heads_of_pauses", {"path": ""}, _reseal_pause),
    _Kind("signal", "heads_of_signals", {"signal": "", "number": -1}, _reseal_signal),
)
_VALUE_KIND = _Kind("value", "heads_of_values", {"kind": "", "key": ""}, _reseal_value)
_MEMORY_KIND = _Kind("memory", "heads_of_memory", {"life": "", "key": ""}, _reseal_memory)
_HOOK_KINDS = (
    _Kind("webhook", "heads_of_webhooks", {"id": ""}, _reseal_webhook),
    _Kind("delivery", "heads_of_deliveries", {}, _reseal_delivery),
)
