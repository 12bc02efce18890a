"""Find the version of a function that can carry a task on, or bring the task to the version there is."""

from __future__ import annotations

from typing import Any

from perdure._durable.attaching import ANY
from perdure._durable.forking import first_entry
from perdure._durable.functions import DurableFunction
from perdure._durable.ledger import read_entries
from perdure._durable.versions import function_for, upgraded
from perdure._ground import envelope
from perdure._store import Row, Store
from perdure._tasks import Hold, Task
from perdure.errors import LeaseLost


async def fitting(
    store: Store, task: Task, hold: Hold, function: DurableFunction[..., Any], call: Row
) -> DurableFunction[..., Any]:
    """The function that carries the task of this call on: of the version that began it, or this one, after an upgrade.

    Raises:
        ReplayDiverged: the task was begun by a version that is not here, and there is no way from it.
    """
    version, sealed = call[1], call[2]
    if version == function.version:
        return function
    older = function_for(function.name, version)
    if older is not None and older.version == version:
        return older
    arguments = envelope.unseal(sealed, kind="arguments", bound_to=task.uid, ring=store.ring)
    line = (await store.query("get_task_by_uid", uid=task.uid))[0][6]
    entries = [entry for _, entry in await read_entries(store, task.uid, line)]
    new = upgraded(task.id, function, version, arguments, entries)
    params = {
        **task._event("upgraded", {"from": version, "to": function.version}),
        "entries": await first_entry(store, task.uid, line, ANY),
        "function_version": function.version,
        "arguments": envelope.seal(new, kind="arguments", bound_to=task.uid, ring=store.ring),
    }
    if await store.verb("begin_line", task.uid, params, key=task.id, fence=hold.fence) is None:
        lost = LeaseLost(task.id, "another attempt has the lease, so it was not upgraded")
        hold.fence.close(lost)
        raise lost
    return function
