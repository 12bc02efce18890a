"""Let a paused or failed task go on: with changes to its state, with what it was told, or with something else to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure._store import TaskRow
from perdure._tasks import records, refusals
from perdure._tasks.checkpoints import history
from perdure._tasks.core import TaskCore
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.once import Once
from perdure._tasks.pauses import messages as telling
from perdure._tasks.task_row import current_row
from perdure.errors import InvalidInput

Json = Any


async def resume_with(
    task: TaskCore, row: TaskRow, patch: Mapping[str, Json], told: Mapping[str, Json], *, once: Once | None = None
) -> bool:
    """Resume the task as it was seen in `row`, with `patch` merged into its state; False when it has changed."""
    if not patch:
        return await moves.try_move(task, "resume", data=dict(told), version=row.version, once=once)
    before, _, damaged = await records.newest_good(task._store, row)
    if damaged:
        await task._set_aside(row, before.seq, damaged)
        return False  # that has changed the task; the caller looks again
    try:
        raw = history.patched(before.raw, patch)
    except InvalidInput:  # the state is not a mapping: the decision is in the event only
        return await moves.try_move(task, "resume", data={**told, **patch}, version=row.version, once=once)
    return await moves.try_move(task, "resume", raw=raw, before=before, data=dict(told), version=row.version, once=once)


async def resume(task: TaskCore, patch: Mapping[str, Any], once: Once | None = None) -> None:
    """Go on from the newest state that can be read, with some keys set; unless that was done `once` before.

    Raises:
        InvalidTransition: the task is not paused and not failed.
    """
    store = task._store
    while True:
        row = await current_row(store, task.id, task.uid)
        if await task._has_done(once):
            return
        refusal = await refusals.why(store, row, "resume")
        if refusal is not None:
            task.status = row.status  # type: ignore[assignment]
            raise refusal
        before, _, damaged = await records.newest_good(store, row)
        if damaged:
            await task._set_aside(row, before.seq, damaged)
        raw = history.patched(before.raw, patch)
        data = {"set": sorted(map(str, patch))} if patch else {}
        version = row.version if once is not None else None
        if await moves.try_move(task, "resume", raw=raw, before=before, data=data, version=version, once=once):
            return


async def resume_at(
    task: TaskCore,
    patch: Mapping[str, Any] | None,
    checkpoint: str | None,
    keep: history.Keep,
    once: Once | None = None,
) -> None:
    """The same, from a checkpoint if one is named; `keep` gives the journal entries that stay then.

    Raises:
        InvalidTransition: the task is neither paused nor failed.
        NotFound: the checkpoint does not exist.
    """
    if checkpoint is not None:
        await history.rollback(task, checkpoint, patch=patch or {}, verb="resume", keep=keep, once=once)
    else:
        await resume(task, patch or {}, once)


async def with_instruction(
    task: TaskCore,
    text: str,
    patch: Mapping[str, Any] | None,
    checkpoint: str | None,
    keep: history.Keep,
    once: Once | None = None,
) -> None:
    """The same, with new instructions for the durable function."""
    # A failed task takes no signal, so it is told just after it was let go on; any other one before.
    row = await current_row(task._store, task.id, task.uid)
    refusal = await refusals.why(task._store, row, "resume")
    if refusal is not None and not await task._has_done(once):
        raise refusal
    sent_once = None if once is None else f"{telling.INSTRUCTION} {once.mark}"
    if row.status != "failed":
        await telling.send(task, telling.INSTRUCTION, text, sent_once)
    await resume_at(task, patch, checkpoint, keep, once)
    if row.status == "failed":
        await telling.send(task, telling.INSTRUCTION, text, sent_once)
