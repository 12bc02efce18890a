"""From rows to the records a user sees."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from perdure._ground.clock import moment
from perdure._ground.encoding.codec import stored_json
from perdure._model import (
    Attempt,
    Checkpoint,
    Config,
    Event,
    Pause,
    Progress,
    TaskRecord,
    ToolCall,
    checkpoint_id,
)
from perdure._store import AttemptRow, EventRow, FrameRow, PauseRow, Store, TaskRow
from perdure._tasks.state import Snapshot, newest, snapshots
from perdure.errors import InvalidInput, KeyMissing, NotFound, RecordDamaged

log = logging.getLogger("perdure.tasks")


async def load(store: Store, row: TaskRow) -> tuple[TaskRecord, Snapshot]:
    """The whole record of a task, and the snapshot its next checkpoint builds on."""
    snapshot, frame, damaged = await newest_good(store, row)
    parts = snapshots.contents(snapshot.raw)
    # Not those that began since the row was read: a task that is paused would be shown with an attempt under way.
    attempts = (await store.rows(AttemptRow, "read_attempts", uid=row.uid))[: row.attempts]
    latest = checkpoint(row.uid, frame, parts, snapshot.raw) if frame.seq else None
    if row.status == "paused" and row.due_at is None:
        row = row._replace(due_at=await _next_look(store, row.uid))
    return _record(store, row, parts["state"], latest, attempts, damaged), snapshot


async def _next_look(store: Store, uid: str) -> int | None:
    """When one of the questions a durable function waits for is looked at next."""
    pauses = await store.rows(PauseRow, "read_pauses", uid=uid)
    return min((one.due_at for one in pauses if one.answer is None and one.due_at is not None), default=None)


async def load_for_list(store: Store, row: TaskRow) -> TaskRecord:
    """The record, or as much of it as can be shown: a task that cannot be unsealed or decoded hides no other."""
    try:
        return (await load(store, row))[0]
    except (KeyMissing, RecordDamaged, InvalidInput) as error:
        bare = row._replace(config=None, pause=None, progress=None, result=None, error=None)
        bare = bare._replace(tags=_if_json(row.tags, "{}"), depends_on=_if_json(row.depends_on, "[]"))
        moments: dict[str, Any] = {name: _if_moment(getattr(row, name), least) for name, least in _MOMENTS.items()}
        bare = bare._replace(**moments)
        return replace(_record(store, bare, None, None, (), ()), unreadable=error.what)


# The moments of a row, and the moment shown in place of a damaged one.
_MOMENTS = {"created_at": 0, "updated_at": 0, "started_at": None, "finished_at": None, "archived_at": None}


def _if_moment(ms: int | None, otherwise: int | None) -> int | None:
    try:
        _moment(ms)
    except RecordDamaged:
        return otherwise
    return ms


def _if_json(text: str, otherwise: str) -> str:
    try:
        stored_json(text, "", type(json.loads(otherwise)))
    except RecordDamaged:
        return otherwise
    return text


def _record(
    store: Store,
    row: TaskRow,
    state: object,
    latest: Checkpoint | None,
    attempts: Sequence[AttemptRow],
    damaged: Sequence[str],
) -> TaskRecord:
    uid = row.uid
    pause, progress, spoiled = _shown(store, row)
    return TaskRecord(
        id=row.id,
        uid=uid,
        status=row.status,  # type: ignore[arg-type]
        state=state,
        latest=latest,
        pause=pause,
        error=_readable(_optional(store, uid, "error", row.error)),
        result=_optional(store, uid, "result", row.result),
        progress=progress,
        attempts=[attempt(number, found) for number, found in enumerate(attempts, 1)],
        version=row.version,
        created_at=moment(row.created_at),
        started_at=_moment(row.started_at),
        updated_at=moment(row.updated_at),
        finished_at=_moment(row.finished_at),
        name=row.name,
        description=row.description,
        agent=row.agent,
        tags=stored_json(row.tags, f"the tags of task {row.id!r}", dict),
        config=_optional(store, uid, "config", row.config, Config) or Config(),
        depends_on=tuple(stored_json(row.depends_on, f"what task {row.id!r} depends on", list)),
        archived_at=_moment(row.archived_at),
        hidden=bool(row.hidden),
        damaged=[*damaged, *spoiled],
    )


def _readable(error: Any) -> Any:
    """An error without the bytes by which it is raised again: those are for the code that waits for the task."""
    is_kept = isinstance(error, dict) and isinstance(error.get("raised"), bytes)
    return {name: value for name, value in error.items() if name != "raised"} if is_kept else error


def _shown(store: Store, row: TaskRow) -> tuple[Pause | None, Progress | None, list[str]]:
    """The reason it waits and its progress, which are only for display. If they are damaged that is said in their
    place; state and result are still shown."""
    pause, progress, spoiled = None, None, []
    try:
        pause = _pause(store, row)
    except RecordDamaged as error:
        log.warning("task %s: %s", row.id, error.what)
        spoiled.append("pause")
        if row.pause_reason is not None:
            text = "(what it waits for is damaged)"
            pause = Pause(reason=row.pause_reason, message=text, since=moment(row.updated_at), by={})  # type: ignore[arg-type]
    try:
        progress = _optional(store, row.uid, "progress", row.progress, Progress)
    except RecordDamaged as error:
        log.warning("task %s: %s", row.id, error.what)
        spoiled.append("progress")
    return pause, progress, spoiled


async def newest_good(store: Store, row: TaskRow) -> tuple[Snapshot, FrameRow, list[str]]:
    """The task's state, or, where that is damaged, the newest checkpoint before it that can be read.

    The damaged ones are named, loudly. A missing key is not damage: it is told as such.
    """
    damaged: list[str] = []
    seq = row.state_seq
    while True:
        try:
            snapshot, frame = await newest(store, row.uid, seq)
            return snapshot, frame, damaged
        except KeyMissing:
            raise
        except (RecordDamaged, NotFound) as error:
            damaged.append(checkpoint_id(row.uid, seq))
            older = await _older(store, row, seq)
            if older is None:
                raise RecordDamaged(f"every checkpoint of task {row.id!r}", str(error).splitlines()[0]) from error
            log.warning(
                "task %s: checkpoint %d cannot be read (%s); using checkpoint %d", row.id, seq, error.args[0], older
            )
            seq = older


async def _older(store: Store, row: TaskRow, seq: int) -> int | None:
    """The newest valid checkpoint of the task's line before this one."""
    rows = await store.rows(FrameRow, "read_checkpoints", uid=row.uid, after=-1, limit=1 << 31)
    good = [frame.seq for frame in rows if frame.seq < seq and frame.valid and not frame.superseded]
    return good[-1] if good else None


def checkpoint(uid: str, row: FrameRow, parts: dict[str, Any], raw: bytes) -> Checkpoint:
    return Checkpoint(
        id=checkpoint_id(uid, row.seq),
        seq=row.seq,
        timestamp=moment(row.at),
        data=parts["state"],
        label=row.label,
        cause=row.cause,
        depth=row.depth,
        size=row.size,
        valid=bool(row.valid),
        plan=parts.get("plan"),
        memory=parts.get("memory"),
        partial=parts.get("partial"),
        pending=[ToolCall(**call) for call in parts.get("pending") or ()],
        parent=checkpoint_id(uid, row.parent) if row.parent else None,
        line=row.line,
        superseded=bool(row.superseded),
        pinned=bool(row.pinned),
        author=stored_json(row.author, "an author", dict),
        checksum=checksum(raw),
    )


def checksum(raw: bytes, crc: int | None = None) -> str:
    """Checksum that tells one snapshot's bytes from another's; `crc` is theirs, if it is known."""
    return f"{crc32(raw) if crc is None else crc:08x}"


def attempt(number: int, row: AttemptRow) -> Attempt:
    return Attempt(
        number=number,
        epoch=row.number,
        host=row.host,
        pid=row.pid,
        user=row.user,
        agent=row.agent,
        started_at=moment(row.started_at),
        ended_at=_moment(row.ended_at),
        ended=row.ended,
    )


def event(store: Store, task_id: str, uid: str, row: EventRow) -> Event:
    return Event(
        task_id=task_id,
        number=row.number,
        at=moment(row.at),
        kind=row.kind,
        author=stored_json(row.author, "an author", dict),
        data=store.unseal(uid, "event", row.body),
    )


def event_without_data(task_id: str, row: EventRow) -> Event:
    """An event without its data: it is damaged, or its key is not here."""
    author = stored_json(row.author, "an author", dict)
    return Event(task_id=task_id, number=row.number, at=moment(row.at), kind=row.kind, author=author, data=None)


def _pause(store: Store, row: TaskRow) -> Pause | None:
    pause: Pause | None = _optional(store, row.uid, "pause", row.pause, Pause)
    return pause if pause is None or row.due_at is None else replace(pause, next_look_at=moment(row.due_at))


def _optional(store: Store, uid: str, kind: str, data: bytes | None, as_type: object = Any) -> Any:
    return None if data is None else store.unseal(uid, kind, data, as_type)


def _moment(ms: int | None) -> Any:
    return None if ms is None else moment(ms)
