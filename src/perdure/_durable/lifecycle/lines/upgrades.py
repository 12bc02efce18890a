"""Find the version of a function that can carry a task on, or upgrade the task to the version at hand."""

from __future__ import annotations

from typing import Any

from perdure._durable.declare import DurableFunction, chosen_among, function_for, refuse_namesakes, upgraded
from perdure._durable.journal import read_entries
from perdure._durable.lifecycle.attach_check import ANY, begun_in
from perdure._durable.lifecycle.lines.line_carry_over import begin_line
from perdure._ground.secrets import envelope
from perdure._store import CallRow, Store
from perdure._tasks import Hold, Task, current_row


async def function_of_task(
    store: Store, task_id: str, uid: str, function: DurableFunction[..., Any]
) -> DurableFunction[..., Any]:
    """The function itself; if several have its name, the one of the module that began the task.

    Raises:
        ReplayDiverged: it is not recorded which one that is.
    """
    if not function.namesakes:
        return function
    module = await begun_in(store, uid)
    found = chosen_among(function.namesakes, module)
    if found is None:
        raise refuse_namesakes(task_id, function.namesakes, module)
    return found


async def fitting_version(
    store: Store, task: Task, hold: Hold, function: DurableFunction[..., Any], call: CallRow
) -> DurableFunction[..., Any]:
    """The function that carries on the task of this call: the version that began it, or this one after an upgrade.

    Raises:
        ReplayDiverged: the version that began the task is not here and cannot be upgraded; or several functions have
            its name, and it is not recorded which one began it.
    """
    function = await function_of_task(store, task.id, task.uid, function)
    version = call.version
    if version == function.version:
        return function
    older = function_for(function.name, version, function.module)
    if older is not None and older.version == version:
        return older
    arguments = envelope.unseal(call.arguments, kind="arguments", bound_to=task.uid, ring=store.ring)
    line = (await current_row(store, task.id, task.uid)).line
    entries = [entry for _, entry in await read_entries(store, task.uid, line)]
    new = upgraded(task.id, function, version, arguments, entries)
    data = {"from": version, "to": function.version}
    await begin_line(task, hold, line, "upgraded", data, version=function.version, arguments=new, begun_with=ANY)
    return function
