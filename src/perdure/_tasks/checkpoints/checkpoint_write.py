"""Store a checkpoint: the one write behind `task.checkpoint`, and behind checkpoints with further parts.

A checkpoint can have parts beside the state: the task's surroundings (`runtime`), how they were restored (`report`).
They are sealed, packed, pruned and rotated with it, and read only when asked for by name.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._model import Checkpoint, Keep, ToolCall, checkpoint_id
from perdure._store import Store
from perdure._tasks import records
from perdure._tasks.checkpoints import history
from perdure._tasks.core import TaskCore
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.lifecycle import take_lease
from perdure._tasks.once import Once, once_of
from perdure._tasks.state import Snapshot, snapshots, unseen_changes
from perdure._tasks.task_walk import outline
from perdure.errors import Conflict, NotFound, RecordDamaged, StaleVersion

if TYPE_CHECKING:
    from perdure._tasks.leases import Hold
    from perdure._tasks.state import Frame


# Causes of checkpoints whose whole state was given by the task's own code.
_GIVEN = ("explicit", "interval")


async def put(
    task: TaskCore,
    state: object,
    *,
    label: str = "",
    plan: object = None,
    memory: object = None,
    partial: object = None,
    pending: Sequence[ToolCall] = (),
    keep: Keep = "none",
    once: str | None = None,
) -> Checkpoint:
    """Make `state` the task's state, with what others wrote since this handle read it.

    With keep="given" this state counts where others have changed the same value.

    Raises:
        NotStorable, TooLarge: nothing was written.
        StaleVersion: others have changed the same value, and `keep` is "none"; nothing was written.
        LeaseHeld: another attempt is alive.
        LeaseLost: another attempt has taken over; nothing was written.
        InvalidTransition: the task is paused or finished.
    """
    raw, copy = snapshots.document(state, plan, memory, partial, pending)
    asked = once_of(once, "checkpoint", label, raw)
    made = await store_made(task, _over(task, raw, copy, keep), label=label, cause="explicit", once=asked)
    if keep == "given":  # its author does not look at `task.state`, and so has not seen what was combined with it
        task._read = Snapshot(made.seq, raw, 0, 0, 0)
    return made


async def read_own_state(task: TaskCore) -> None:
    """Have the next write of the state say that its author had read what the task's own code wrote last.

    A handle reads the state when it is opened. An attempt can begin later, after other attempts have written, and its
    code has not seen what they wrote.
    """
    rows = await outline(task._store, task.uid)
    own = [row.seq for row in rows if row.valid and not row.superseded and row.cause in _GIVEN]
    task._read, _ = await snapshots.materialise(task._store, task.uid, max(own, default=0))


async def read_state_at(task: TaskCore, seq: int) -> None:
    """Have the next write of the state say that its author had read checkpoint `seq`.

    Raises:
        StaleVersion: that checkpoint has been removed since.
    """
    if task._read.seq != seq:
        try:
            task._read, _ = await snapshots.materialise(task._store, task.uid, seq)
        except NotFound:
            raise StaleVersion(task.id, seq, task._read.seq, path="the state") from None


async def save_working_state(task: TaskCore) -> None:
    """Checkpoint what the code has made of `task.state`, if it has changed; `task.state` stays the code's own.

    Raises:
        what `put` raises.
    """
    own = unseen_changes.own_parts(task._read.raw)
    raw, copy = codec.round_trip({**own, "state": task.state})
    if raw != codec.encode(own):
        made = await store_made(task, _over(task, raw, copy, "none"), cause="interval", shows=False)
        task._read = Snapshot(made.seq, raw, 0, 0, 0)


def _over(task: TaskCore, raw: bytes, copy: dict[str, Any], keep: Keep) -> Callable[[Snapshot], Made]:
    read, crc = task._read, crc32(raw)

    def make(before: Snapshot) -> Made:
        combined = unseen_changes.combine(task.id, read, before, raw, keep=keep)
        if combined is not None:
            return Made(snapshots.build(task._store, task.uid, combined[0], before), *combined)
        return Made(snapshots.build(task._store, task.uid, raw, before, crc), raw, copy, crc)

    return make


async def store_once(task: TaskCore, *, label: str, causes: Sequence[str], may_be_there: bool) -> str:
    """The id of the checkpoint with one of these causes; made for the first of them, of the state as it is now, if an
    earlier attempt has made none.

    Raises:
        LeaseHeld, LeaseLost, InvalidTransition: as `put` does.
    """
    made = [seq for cause in causes for seq in await _made_by(task, cause)] if may_be_there else []
    if made:
        return checkpoint_id(task.uid, made[-1])

    def make(before: Snapshot) -> Made:
        own = unseen_changes.own_parts(before.raw)
        if own.keys() != snapshots.contents(before.raw).keys():
            raw, copy = codec.round_trip(own)
            return Made(snapshots.build(task._store, task.uid, raw, before), raw, copy)
        frame = snapshots.build(task._store, task.uid, before.raw, before)
        return Made(snapshots.with_places(frame, before.places), before.raw, own)

    return (await store_made(task, make, label=label, cause=causes[0], shows=False)).id


class Made(NamedTuple):
    """A checkpoint made from the previous one."""

    frame: Frame
    raw: bytes
    copy: dict[str, Any]
    crc: int | None = None  # of the raw bytes, if it is known


async def store_made(
    task: TaskCore,
    make: Callable[[Snapshot], Made],
    *,
    label: str = "",
    cause: str,
    kind: str = "checkpoint",
    shows: bool = True,
    once: Once | None = None,
    told: Mapping[str, Any] | None = None,
) -> Checkpoint:
    """Store a checkpoint that `make` makes from the newest one, made anew while others write; `kind` is its event, and
    `told` is what the event says besides.

    With `shows` it is what `task.state` holds from now on; without, `task.state` stays as the code has made it. One
    that was stored `once` before is read instead.

    Raises:
        LeaseHeld, LeaseLost, InvalidTransition: as `put` does; and what `make` raises.
    """
    if once is not None:
        return await _store_once(task, make, once, label=label, cause=cause, kind=kind, shows=shows)
    while True:
        hold = await take_lease(task)
        made = make(await task._base(hold))
        stored = await _try_store(task, hold, made, label=label, cause=cause, kind=kind, shows=shows, told=told)
        if stored is not None:
            return stored
        await moves.explain(task, "checkpoint", hold)


async def _store_once(task: TaskCore, make: Callable[[Snapshot], Made], once: Once, **how: Any) -> Checkpoint:
    if task._hold is None and await task._has_done(once):
        return await _stored_before(task, once)  # without taking a lease for nothing
    try:
        while True:
            hold = await take_lease(task)
            base = await task._base(hold)  # read before the look: a write on it fails if another one came after
            if await task._has_done(once):
                return await _stored_before(task, once)
            stored = await _try_store(task, hold, make(base), once=once, **how)
            if stored is not None:
                return stored
            await moves.explain(task, "checkpoint", hold)
    except Conflict:
        if await task._has_done(once):
            return await _stored_before(task, once)
        raise


async def _stored_before(task: TaskCore, once: Once) -> Checkpoint:
    """The checkpoint that the first request stored."""
    for row in reversed(await outline(task._store, task.uid)):
        if f'"once":"{once.mark}"' in row.author:
            snapshot, found = await snapshots.materialise(task._store, task.uid, row.seq)
            return records.checkpoint(task.uid, found, snapshots.contents(snapshot.raw), snapshot.raw)
    raise NotFound(
        "checkpoint stored for key",
        once.key,
        task._store.place,
        do="gc has removed it since; a newer one has its state",
    )


async def _try_store(
    task: TaskCore,
    hold: Hold,
    made: Made,
    *,
    label: str,
    cause: str,
    kind: str,
    shows: bool,
    once: Once | None = None,
    told: Mapping[str, Any] | None = None,
) -> Checkpoint | None:
    """One try; None when it was refused."""
    frame = made.frame
    kind_of = {"label": label, "cause": cause, "depth": 0, "position": 0}
    data = {**(told or {}), "label": label, "size": frame.size} if label else {**(told or {}), "size": frame.size}
    params = {**task._event(kind, data, once), **frame.columns(), **kind_of}
    await snapshots.put_chunks(task._store, task.uid, frame, task.id)
    write = task._store.verb("checkpoint", task.uid, params, key=task.id, fence=hold.fence)
    stored: Checkpoint | None = None
    try:
        await write
    finally:  # also when a signal's handler raised meanwhile: this handle knows what it wrote
        if write.row is not None:
            stored = _stored(task, hold, made, write.row, params)
            if shows:
                task.state, task._read = made.copy["state"], task._snapshot
    return stored


def _stored(
    task: TaskCore,
    hold: Hold,
    made: Made,
    row: tuple[Any, ...],
    params: dict[str, Any],
) -> Checkpoint:
    seq, _version, status = row
    frame, raw, copy, crc = made
    task.status = status
    task._snapshot = hold.snapshot = frame.snapshot(seq, raw)
    return Checkpoint(
        id=checkpoint_id(task.uid, seq),
        seq=seq,
        timestamp=moment(params["at"]),
        data=copy["state"],
        label=params["label"],
        cause=params["cause"],
        depth=params["depth"],
        size=frame.size,
        valid=True,
        plan=copy.get("plan"),
        memory=copy.get("memory"),
        partial=copy.get("partial"),
        pending=[ToolCall(**call) for call in copy.get("pending") or ()],
        parent=checkpoint_id(task.uid, frame.parent) if frame.parent else None,
        author=json.loads(params["author"]),
        checksum=records.checksum(raw, crc),
    )


# ── parts beside the state ───────────────────────────────────────────────────────────────────────


async def carry(
    task: TaskCore,
    part: str,
    value: object,
    *,
    label: str = "",
    cause: str,
    kind: str,
    told: Mapping[str, Any] | None = None,
) -> Checkpoint:
    """A checkpoint of the unchanged state with one more part; `told` is added to its event.

    Raises:
        NotStorable: the value would not come back as it was; nothing was written.
        LeaseHeld, LeaseLost, InvalidTransition: as `put` does.
    """

    def make(before: Snapshot) -> Made:
        raw, copy = codec.round_trip({**unseen_changes.own_parts(before.raw), part: value})
        snapshots.check_size(raw, f"the state with its {part}")
        return Made(snapshots.build(task._store, task.uid, raw, before), raw, copy)

    return await store_made(task, make, label=label, cause=cause, kind=kind, shows=False, told=told)


async def carried(
    task: TaskCore, part: str, *, cause: str, at: str | None = None
) -> tuple[Checkpoint, Any, list[str]] | None:
    """A checkpoint that carries the part, the part, and the ids of newer ones that cannot be read.

    The one named, or the newest valid one; None if there is none.

    Raises:
        NotFound: there is no checkpoint of that name, or it carries no such part.
        RecordDamaged: the named one cannot be read.
    """
    if at is not None:
        snapshot, row = await history.find(task, at)
        parts = snapshots.contents(snapshot.raw)
        if part not in parts:
            raise NotFound(f"{part} in checkpoint", at, task._store.place, do="`rt.save()` makes a checkpoint with one")
        return records.checkpoint(task.uid, row, parts, snapshot.raw), parts[part], []
    damaged: list[str] = []
    for seq in reversed(await _made_by(task, cause)):
        try:
            snapshot, row = await snapshots.materialise(task._store, task.uid, seq)
        except (NotFound, RecordDamaged):
            damaged.append(checkpoint_id(task.uid, seq))
            records.log.warning("task %s: checkpoint %d cannot be read; an earlier one is used", task.id, seq)
            continue
        parts = snapshots.contents(snapshot.raw)
        return records.checkpoint(task.uid, row, parts, snapshot.raw), parts.get(part), damaged
    return None


async def all_carried(store: Store, uid: str, part: str, *, cause: str) -> AsyncIterator[Any]:
    """The part of every checkpoint with this cause, the set aside and superseded ones too.

    Raises:
        RecordDamaged, KeyMissing: one of them cannot be read.
    """
    for row in await outline(store, uid):
        if row.cause == cause:
            parts = snapshots.contents((await snapshots.materialise(store, uid, row.seq))[0].raw)
            if part in parts:
                yield parts[part]


async def has_carried(task: TaskCore, cause: str) -> bool:
    """True if there is a valid checkpoint with this cause."""
    return bool(await _made_by(task, cause))


async def _made_by(task: TaskCore, cause: str) -> list[int]:
    """The numbers of the valid checkpoints with this cause, oldest first."""
    rows = await outline(task._store, task.uid)
    return [row.seq for row in rows if row.cause == cause and row.valid and not row.superseded]
