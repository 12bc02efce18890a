"""Let a paused task go on with what it was told: one write, refused to everybody but the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perdure._store import TaskRow
from perdure._tasks import history, moves, records
from perdure.errors import InvalidInput

if TYPE_CHECKING:
    from perdure._tasks.task import Task

Json = Any


async def resume_with(task: Task, row: TaskRow, patch: Mapping[str, Json], told: Mapping[str, Json]) -> bool:
    """Resume the task as it was seen in `row`, with `patch` merged into its state; False when it has changed."""
    if not patch:
        return await moves.try_move(task, "resume", data=dict(told), version=row.version)
    before, _, damaged = await records.newest_good(task._store, row)
    if damaged:
        await history.set_aside(task, row, before.seq, damaged)
        return False  # that has changed the task; whoever asked looks again
    try:
        raw = history.patched(before.raw, patch)
    except InvalidInput:  # a state that is no mapping: what was said stands in the event alone
        return await moves.try_move(task, "resume", data={**told, **patch}, version=row.version)
    return await moves.try_move(task, "resume", raw=raw, before=before, data=dict(told), version=row.version)
