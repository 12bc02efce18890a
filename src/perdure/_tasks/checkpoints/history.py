"""A task's past: listing checkpoints, comparing them, going back, branching off, setting some aside."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

from perdure._ground.encoding import codec
from perdure._model import MOVES, Checkpoint, checkpoint_id, seq_of
from perdure._store import FrameRow, Store
from perdure._tasks import leases, records
from perdure._tasks.core import TaskCore
from perdure._tasks.once import Once
from perdure._tasks.state import NO_FRAME, Snapshot, snapshots
from perdure._tasks.task_row import current_row
from perdure.errors import Conflict, InvalidInput, InvalidTransition, NotFound, RecordDamaged

_PAGE = 200
_MOST_TRIES = 100  # of a rollback beside an attempt that goes on meanwhile


class KeptEntries(NamedTuple):
    """The part of its journal that a durable function's task keeps when it is rolled back."""

    entries: str  # packed
    seen: int  # the position of the last entry they were chosen from


# What a durable function's task keeps when it is rolled back to a checkpoint (by number); None for any other task.
Keep = Callable[[int, bool | None], Awaitable[KeptEntries | None]]


class LeftToWorker(Exception):
    """Not a failure: a rollback is on disk as a wish, and a process that has the code fulfils it."""


async def checkpoints(store: Store, uid: str) -> AsyncIterator[Checkpoint]:
    """Every checkpoint in order. A damaged one is passed over with those built on it, and named in the log."""
    async for row, raw in _walk(store, uid):
        if row.seq and raw is not None:
            yield records.checkpoint(uid, row, snapshots.contents(raw), raw)


async def _walk(store: Store, uid: str) -> AsyncIterator[tuple[FrameRow, bytes | None]]:
    """Each checkpoint's row and snapshot; a delta of the one just read needs no second read."""
    before: tuple[int, bytes | None] = (-1, None)
    after = -1
    while page := await store.rows(FrameRow, "read_checkpoints", uid=uid, after=after, limit=_PAGE):
        for row in page:
            raw: bytes | None
            try:
                raw = await _snapshot(store, uid, row, before)
            except NotFound:
                continue  # gc took it while we were reading
            except RecordDamaged as error:
                records.log.warning("checkpoint %s.%d cannot be read: %s", uid, row.seq, error.problem)
                raw = None
            before = (row.seq, raw)
            yield row, raw
        after = page[-1].seq


async def _snapshot(store: Store, uid: str, row: FrameRow, before: tuple[int, bytes | None]) -> bytes:
    if row.base is None or row.base == before[0]:
        try:
            return await snapshots.extend(store, uid, row, before[1])
        except RecordDamaged:
            pass  # or rewritten by gc meanwhile: the stored row decides
    return (await snapshots.materialise(store, uid, row.seq))[0].raw


async def find(task: TaskCore, name: str) -> tuple[Snapshot, FrameRow]:
    """A checkpoint by its id or its number."""
    seq = seq_of(task.uid, str(name))
    do = f"`perdure checkpoints {quote(task.id)}` lists those of task {task.id!r}"
    if seq is None:
        raise NotFound("checkpoint", str(name), task._store.place, do=do)
    try:
        return await snapshots.materialise(task._store, task.uid, seq)
    except NotFound:  # in the words of the caller, who does not know uids
        raise NotFound("checkpoint", str(name), task._store.place, do=do) from None


async def read_checkpoint(store: Store, uid: str, seq: int) -> dict[str, Any] | None:
    """The content of a checkpoint, by its number; None for one that was set aside.

    Raises:
        NotFound, RecordDamaged: it is gone, or cannot be read.
    """
    snapshot, row = await snapshots.materialise(store, uid, seq)
    return snapshots.contents(snapshot.raw) if row.valid else None


def patched(raw: bytes, patch: Mapping[str, Any]) -> bytes:
    """A snapshot with some keys of its state set (shallow)."""
    if not patch:
        return raw
    parts = codec.decode(raw)
    state = parts["state"]
    if state is not None and not isinstance(state, dict):
        raise InvalidInput(
            f"the state is a {type(state).__name__}, so no keys can be set in it", do="give a whole state instead"
        )
    new, _ = snapshots.document({**(state or {}), **patch})
    parts["state"] = codec.decode(new)["state"]
    return codec.encode(parts)


async def rollback(
    task: TaskCore,
    to: str,
    *,
    patch: Mapping[str, Any] | None,
    verb: str,
    keep: Keep,
    undo: bool | None = None,
    once: Once | None = None,
) -> None:
    """Go back to a checkpoint in one write; with a patch, as a new checkpoint that resumes the task. Unless that was
    done `once` before.

    A durable function continues from there, with the journal entries that `keep` gives; `undo` says what happens to
    the effects it has done since.

    Raises:
        Conflict: the checkpoint is invalid, or the task goes on too quickly for its journal to be read.
    """
    store = task._store
    befores = MOVES["resume"].before if verb == "resume" else _MAY_GO_BACK
    for tries in itertools.count(1):
        now = await current_row(store, task.id, task.uid)
        if await task._has_done(once):
            break
        if now.status not in befores:
            raise InvalidTransition(task.id, now.status, verb, do="fork it instead: the fork begins at the checkpoint")
        target, row = await find(task, to)  # each time anew: gc may have removed it
        if not row.valid:
            raise Conflict(f"checkpoint {row.seq} was set aside as invalid", do="choose a valid one")
        raw = patched(target.raw, patch) if patch is not None else None
        try:
            kept = await keep(row.seq, undo)
        except LeftToWorker:
            await task.record()
            return
        if undo and kept is not None:
            now = await current_row(store, task.id, task.uid)  # undoing has changed it
        event = task._event("rolled back" if verb == "rollback" else "resumed", {"to": row.seq}, once)
        params: dict[str, Any] = {
            **NO_FRAME,
            **event,
            "target": row.seq,
            "version": now.version,
            "befores": ",".join(sorted(befores)),
            "after": "running" if verb == "resume" or (kept is not None and now.status != "pending") else None,
            "entries": kept.entries if kept is not None else "[]",
            "seen": kept.seen if kept is not None else None,
        }
        frame = snapshots.build(store, task.uid, raw, target) if raw is not None else None
        if frame is not None:
            params.update(frame.columns(), adds=1, cause=verb)
            await snapshots.put_chunks(store, task.uid, frame, task.id)
        if await store.verb("rollback", task.uid, params, key=task.id) is not None:
            break
        if tries == _MOST_TRIES:
            raise Conflict(
                f"task {task.id!r} goes on while it is being rolled back", do="pause it first, then roll it back"
            )
    hold = leases.held(store, task.uid)
    if hold is not None:
        leases.forget(store, hold)
    await task.record()


_MAY_GO_BACK = frozenset({"pending", "running", "paused", "failed"})


async def fork_columns(task: TaskCore, at: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns a fork of the task begins with: the arguments of its creation.

    Raises:
        NotFound: there is no such checkpoint.
    """
    row = await current_row(task._store, task.id, task.uid)
    if at is not None:
        snapshot, frame = await find(task, at)
    else:
        snapshot, frame, _ = await records.newest_good(task._store, row)
    state = snapshots.contents(patched(snapshot.raw, changes))["state"]
    origin = {"forked_from": task.id, "uid": task.uid, "checkpoint": frame.seq}
    record, _ = await records.load(task._store, row)
    return {
        "state": state,
        "cause": "fork",
        "origin": origin,
        "name": record.name,
        "description": record.description,
        "agent": record.agent,
        "tags": record.tags,
        "config": record.config,
    }


async def invalidate_if(task: TaskCore, predicate: Callable[[Checkpoint], bool | Awaitable[bool]]) -> Sequence[str]:
    store = task._store
    while True:
        row = await current_row(store, task.id, task.uid)
        stale: list[int] = []
        good = 0
        async for frame, raw in _walk(store, task.uid):
            if frame.seq == 0 or not frame.valid:
                continue
            verdict = raw is None or predicate(records.checkpoint(task.uid, frame, snapshots.contents(raw), raw))
            if await verdict if inspect.isawaitable(verdict) else verdict:
                stale.append(frame.seq)
            elif not frame.superseded and frame.seq <= row.state_seq:
                good = frame.seq
        if not stale:
            return []
        target = good if row.state_seq in stale else row.state_seq
        if await task._invalidate(row, target, stale, "invalidated"):
            await task.record()
            return [checkpoint_id(task.uid, seq) for seq in stale]


async def pin(task: TaskCore, checkpoint: str, pinned: bool) -> None:
    _, row = await find(task, checkpoint)
    if await task._store.verb("pin", task.uid, {"target": row.seq, "pinned": int(pinned)}, key=task.id) is None:
        raise NotFound("checkpoint", checkpoint, task._store.place)  # gc was quicker
