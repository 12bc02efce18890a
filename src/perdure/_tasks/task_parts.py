"""The hidden tasks that are parts of a task, such as the tool calls of an agent. They are deleted together with it."""

from __future__ import annotations

import json

from perdure._model import FINISHED
from perdure._store import CallRow, ChildRow, Store, TaskRow
from perdure._tasks.core import attach
from perdure._tasks.lifecycle import status_moves as moves
from perdure.errors import InvalidTransition


async def parts_of(store: Store, uid: str) -> list[TaskRow]:
    """The parts of a task, and theirs in turn: each one before the task it is a part of."""
    children = [child.uid for child in await store.rows(ChildRow, "children_of", uid=uid)]
    rows = await store.rows(TaskRow, "tasks_of", uids=json.dumps(children)) if children else []
    found: list[TaskRow] = []
    for row in rows:
        if row.hidden:
            found += [*await parts_of(store, row.uid), row]
    return found


async def is_part(store: Store, row: TaskRow) -> bool:
    """True if the task is a hidden part of one that still exists."""
    if not row.hidden:
        return False
    calls = await store.rows(CallRow, "get_call", uid=row.uid)
    return bool(calls and calls[0].parent_uid and await store.query("get_task_by_uid", uid=calls[0].parent_uid))


async def delete_parts(store: Store, uid: str, *, force: bool) -> None:
    """Delete the parts of a task. `force` cancels those that have not ended.

    Raises:
        InvalidTransition: a part has not ended; nothing was deleted.
    """
    parts = await parts_of(store, uid)
    live = [row for row in parts if row.status not in FINISHED]
    for row in live:
        if not force:
            raise InvalidTransition(row.id, row.status, "be deleted", do="finish it first, or delete(force=True)")
        await moves.move(await attach(store, row.uid), "cancel", ended="cancelled", data={"undo": False}, ends=True)
    for row in await parts_of(store, uid) if live else parts:
        params = {**store.event(row.uid, "deleted", {}), "version": row.version}
        await store.verb("delete_task", row.uid, params, key=row.id)
