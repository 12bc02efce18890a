"""A task's family: which tasks started it, which it has started, and which it depends on."""

from __future__ import annotations

import json
from collections.abc import Sequence

from perdure._ground.clock import moment
from perdure._ground.encoding.codec import stored_json
from perdure._model import FINISHED, Family, Relative
from perdure._store import CallRow, ChildRow, Store, TaskRow
from perdure._tasks.task_row import find_row

_MOST_PARENTS = 100


async def read_family(store: Store, row: TaskRow, limit: int) -> Family:
    """The relatives of a task; of its children the newest `limit`, and how many there are in all."""
    children = await store.rows(ChildRow, "children_of", uid=row.uid)
    newest = [child.uid for child in reversed(children[-limit:])]
    needed: list[str] = stored_json(row.depends_on, f"what task {row.id!r} depends on", list)
    found = {id: await find_row(store, id) for id in needed[:limit]}
    return Family(
        parents=await _parents(store, row.uid),
        children=await _relatives(store, newest),
        children_total=len(children),
        children_open=sum(child.status not in FINISHED for child in children),
        dependencies=[_relative(other) if other is not None else Relative(id=id) for id, other in found.items()],
    )


async def _parents(store: Store, uid: str) -> list[Relative]:
    """The task's parent, its parent's parent, and so on."""
    uids: list[str] = []
    while len(uids) < _MOST_PARENTS:
        calls = await store.rows(CallRow, "get_call", uid=uid)
        if not calls or calls[0].parent_uid is None or calls[0].parent_uid in uids:
            break
        uid = calls[0].parent_uid
        uids.append(uid)
    return await _relatives(store, uids)


async def _relatives(store: Store, uids: Sequence[str]) -> list[Relative]:
    """In the order of their uids; one that is gone is left out."""
    rows = {row.uid: row for row in await store.rows(TaskRow, "tasks_of", uids=json.dumps(uids))} if uids else {}
    return [_relative(rows[uid]) for uid in uids if uid in rows and rows[uid].namespace == store.namespace]


def _relative(row: TaskRow) -> Relative:
    return Relative(
        id=row.id,
        uid=row.uid,
        status=row.status,  # type: ignore[arg-type]
        name=row.name,
        agent=row.agent,
        created_at=moment(row.created_at),
        finished_at=None if row.finished_at is None else moment(row.finished_at),
    )
