"""From rows to the summaries a list shows. A row that is damaged or cannot be unsealed hides no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from perdure._ground.clock import moment
from perdure._ground.encoding.codec import stored_json
from perdure._model import Children, Part, Pause, Progress, TaskSummary
from perdure._store import Store, SummaryRow, TaskRow
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged

T = TypeVar("T")
_EPOCH = moment(0)


def summary(store: Store, row: SummaryRow) -> TaskSummary:
    """The summary of a task in a list."""
    problems: list[str] = []

    def readable(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except (KeyMissing, RecordDamaged, InvalidInput) as error:
            problems.append(error.what)
            return otherwise

    def when(ms: int | None, otherwise: datetime | None = None) -> Any:
        return None if ms is None else readable(lambda: moment(ms), otherwise)

    found = TaskSummary(
        id=row.id,
        uid=row.uid,
        status=row.status,  # type: ignore[arg-type]
        reason=row.pause_reason,  # type: ignore[arg-type]
        function=row.function,
        version=row.function_version,
        queue=row.queue,
        agent=row.agent,
        name=row.name,
        tags=readable(lambda: stored_json(row.tags, f"the tags of task {row.id!r}", dict), {}),
        progress=readable(lambda: _progress(store, row), None),
        attempts=row.attempts,
        created_at=when(row.created_at, _EPOCH),
        started_at=when(row.started_at),
        updated_at=when(row.updated_at, _EPOCH),
        finished_at=when(row.finished_at),
        archived_at=when(row.archived_at),
        due_at=when(row.due_at),
        etag=f"v{row.version}",
        hidden=bool(row.hidden),
    )
    return replace(found, unreadable="; ".join(problems)) if problems else found


async def summaries_of(store: Store, uids: Collection[str]) -> Sequence[TaskSummary]:
    """The tasks with these uids, newest first; one that is gone, or of another namespace, is left out."""
    rows = await store.rows(SummaryRow, "summaries_of", namespace=store.namespace, uids=json.dumps(sorted(set(uids))))
    return [summary(store, row) for row in rows]


def _progress(store: Store, row: SummaryRow) -> Progress | None:
    if row.progress is None:
        return None
    progress: Progress = store.unseal(row.uid, "progress", row.progress, Progress)
    return progress


async def with_parts(store: Store, found: Sequence[TaskSummary], parts: Collection[Part]) -> Sequence[TaskSummary]:
    """The same, with what else was asked for."""
    uids = json.dumps([one.uid for one in found])
    if "pause" in parts and any(one.is_paused for one in found):
        rows = {row.uid: row for row in await store.rows(TaskRow, "tasks_of", uids=uids)}
        found = [_with_pause(store, one, rows.get(one.uid)) for one in found]
    if "children" in parts:
        counts = {uid: Children(total, open_) for uid, total, open_ in await store.query("count_children", uids=uids)}
        found = [replace(one, children=counts.get(one.uid, Children(0, 0))) for one in found]
    return found


def _with_pause(store: Store, found: TaskSummary, row: TaskRow | None) -> TaskSummary:
    if row is None or row.pause is None or row.status != "paused":
        return found
    try:
        pause: Pause = store.unseal(row.uid, "pause", row.pause, Pause)
    except (KeyMissing, RecordDamaged, InvalidInput) as error:
        return replace(found, unreadable="; ".join([one for one in (found.unreadable, error.what) if one]))
    return replace(found, pause=replace(pause, next_look_at=found.due_at) if found.due_at is not None else pause)
