"""`app.run`: carry a task on in this process until it ends or pauses.

Owns the loop around attempts: it starts or finds the task, takes its lease, makes one attempt after the other
(single_attempt.py), and waits while the task is paused or another process has it (run_waits.py).
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from perdure._durable.control import includes_task, is_halted, watch_of, why_stopped
from perdure._durable.declare import DurableFunction, function_for
from perdure._durable.lifecycle.lines import function_of_task
from perdure._durable.lifecycle.run_waits import Stopped, WaitNotices, stopped
from perdure._durable.lifecycle.single_attempt import come_back
from perdure._durable.lifecycle.task_handle import result_of
from perdure._durable.lifecycle.task_start import LOOK_SECONDS, Beginning, check_call, start
from perdure._durable.lifecycle.traced_attempt import make_attempt
from perdure._ground.bridge import Nap
from perdure._model import FINISHED
from perdure._store import CallRow
from perdure._tasks import (
    Task,
    Tasks,
    begin_by_draft,
    begun_by_draft,
    blocked_by,
    current_row,
    draft_of,
    held_lease,
    store_of,
    take_lease,
    take_lease_by,
)
from perdure.errors import (
    Conflict,
    InvalidTransition,
    LeaseHeld,
    TaskBlocked,
)

# A pause can last for months: while it lasts, the process looks less and less often, at last every 0.25 s.
LONGEST_LOOK_SECONDS = 0.25


async def run_until_paused(
    tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any
) -> Stopped[Any]:
    """Carry the task on in this process until it ends or waits without a process. Returns which of the two."""
    found = await run_here(tasks, id, function, args, kwargs, until_paused=True)
    return found if isinstance(found, Stopped) else Stopped(id=id, status="completed", value=found)


async def run_here(
    tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any, *, until_paused: bool = False
) -> Any:
    """Carry the task on in this process until it ends, and return its result. With `until_paused`, return a `Stopped`
    when it pauses."""
    store = store_of(tasks)
    function = check_call(id, function)
    watch = watch_of(store, asyncio.get_running_loop())
    switches = watch.seen()
    while switches is None:
        switches = await watch.switches()
    halted = includes_task(switches, id)
    draft = draft_of(tasks, function.alike) if not halted else None
    if draft is not None:
        arguments, copies = function.signature.keep_arguments(args, kwargs)
        uid, write = begin_by_draft(tasks, draft, id, arguments)
        hold = await take_lease_by(store, write, id, uid)
        del write  # else thousands of tasks at work have the garbage collector look through thousands of writes
        if hold is not None:
            task = begun_by_draft(tasks, draft, id, uid)
            ended = await make_attempt(tasks, task, hold, function, Beginning(arguments, None, None, copies))
            return ended.value if ended is not None else await _until_its_end(tasks, task, function, until_paused)
    task, beginning = await start(tasks, id, function, args, kwargs, here=not halted, is_taken=draft is not None)
    hold = held_lease(store, task.uid) if task.created else None
    if hold is not None:
        ended = await make_attempt(tasks, task, hold, function, beginning)
        if ended is not None:
            return ended.value
    return await _until_its_end(tasks, task, function, until_paused)


async def carry_on_here(tasks: Tasks, task: Task) -> Any:
    """Carry on an existing task in this process until it ends. Returns its function's result, or the task itself.

    Raises:
        Conflict: this process does not know the task's function.
    """
    rows = await store_of(tasks).rows(CallRow, "get_call", uid=task.uid)
    if not rows:
        await task.record()
        return task
    function = function_for(rows[0].function, rows[0].version)
    if function is None:
        raise Conflict(
            f"this process does not know {rows[0].function!r} version {rows[0].version}, "
            f"the function of task {task.id!r}",
            do="import the module that declares it",
        )
    function = await function_of_task(store_of(tasks), task.id, task.uid, function)
    return await _until_its_end(tasks, task, function)


async def _until_its_end(
    tasks: Tasks, task: Task, function: DurableFunction[..., Any], until_paused: bool = False
) -> Any:
    with store_of(tasks).bell.listening():
        return await _carried(tasks, task, function, until_paused)


async def _carried(tasks: Tasks, task: Task, function: DurableFunction[..., Any], until_paused: bool) -> Any:
    store, resting = store_of(tasks), LOOK_SECONDS
    notices = WaitNotices(tasks, task, is_quiet=until_paused)
    while True:
        moves = store.bell.moves
        row = await current_row(store, task.id, task.uid)
        if row.status in FINISHED:
            return result_of(store, row, function)
        if row.status == "paused":
            from perdure._tasks import look_after  # imported late: most runs never pause

            await notices.look(row)
            await look_after(store_of(tasks), task.uid)
            if until_paused:
                row = await current_row(store, task.id, task.uid)
                if row.status == "paused":
                    return await stopped(store, row)
                continue
            longest = min(resting, store.clock.longest_wait)
            await store.bell.moved_since(moves, longest, unheard=longest, gap=longest / 4)
            resting = min(resting * 1.5, LONGEST_LOOK_SECONDS)
            continue
        if await is_halted(store, task.id):
            notices.tell(notices.why or await why_stopped(store, task.id))
            await Nap(LOOK_SECONDS)
            continue
        try:
            hold = await take_lease(store, task.id, task.uid, "", is_exclusive=True)
        except TaskBlocked as error:
            from perdure._tasks import settle_blocked

            notices.tell(error.what)
            blocked = await blocked_by(store, await current_row(store, task.id, task.uid))
            if await settle_blocked(store_of(tasks), blocked) == "wait":
                if until_paused:
                    return Stopped(id=task.id, status="pending", waits_for=error.what)
                await Nap(LOOK_SECONDS)
            continue
        except (LeaseHeld, InvalidTransition) as error:
            if isinstance(error, LeaseHeld) and error.pid != os.getpid():
                notices.tell(error.what)
            await Nap(LOOK_SECONDS)
            continue
        await come_back(tasks, task, hold)
        await make_attempt(tasks, task, hold, function)
        resting = LOOK_SECONDS
