"""Begin a new line of a task's journal with other arguments: after `carry_over`, or after an upgrade."""

from __future__ import annotations

from typing import Any

from perdure._durable.journal import read_entries
from perdure._durable.lifecycle.task_fork import packed
from perdure._durable.models import carried
from perdure._ground import envelope
from perdure._tasks import Hold, Task, event_of, store_of
from perdure.errors import LeaseLost


async def begin_line(
    task: Task,
    hold: Hold,
    line: int,
    event: str,
    data: dict[str, Any],
    *,
    version: int,
    arguments: bytes,
    begun_with: bytes,
) -> None:
    """End this line and begin the next one. It is on disk when this returns.

    The first entry of the new line holds what the line before cost, and the arguments the task was started with.

    Raises:
        LeaseLost: another attempt has taken over.
    """
    store = store_of(task)
    before = [entry for _, entry in await read_entries(store, task.uid, line)]
    params = {
        **event_of(task, event, data),
        "entries": packed(store, task.uid, [(0, carried(before, begun_with))]),
        "function_version": version,
        "arguments": envelope.seal(arguments, kind="arguments", bound_to=task.uid, ring=store.ring),
    }
    if await store.verb("begin_line", task.uid, params, key=task.id, fence=hold.fence) is None:
        lost = LeaseLost(task.id, f"another attempt has the lease; the task was not {event}")
        hold.fence.close(lost)
        raise lost
