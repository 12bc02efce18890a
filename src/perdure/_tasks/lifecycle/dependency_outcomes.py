"""Let a blocked task begin, fail or be skipped, by what has become of those it depends on.

Any number of processes may do so at once: one of them moves the task, because the move is refused to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perdure._model import what_follows
from perdure._tasks.lifecycle.dependencies import Blocked
from perdure._tasks.lifecycle.status_moves import try_move

if TYPE_CHECKING:
    from perdure._tasks.tasks import Tasks


async def fail_circle(tasks: Tasks, blocked: Blocked, circle: Sequence[str]) -> None:
    """Two that were made at the same moment may wait for each other; somebody has to be told."""
    await _fail(tasks, blocked, f"they wait for each other: {' → '.join(circle)}", kind="circle")


async def settle(tasks: Tasks, blocked: Blocked) -> str:
    """Do what its dependencies allow or demand; what was done: begin, wait, fail or skip."""
    choice = what_follows(blocked.dependencies, blocked.policy)
    ended = [f"{id} {status}" for id, status in blocked.dependencies.items() if status in ("failed", "cancelled")]
    if choice == "begin":
        return choice if await _move(tasks, blocked, "begin", {"after": list(blocked.dependencies)}) else "wait"
    if choice == "skip":
        return choice if await _move(tasks, blocked, "cancel", {"skipped": ", ".join(ended)}) else "wait"
    if choice == "fail":
        return choice if await _fail(tasks, blocked, ", ".join(ended)) else "wait"
    return choice


async def _fail(tasks: Tasks, blocked: Blocked, why: str, *, kind: str = "dependency") -> bool:
    error = {"message": f"it cannot begin: {why}", "kind": kind, "dependencies": blocked.dependencies}
    return await _move(tasks, blocked, "fail", error, error=tasks._store.seal(blocked.uid, "error", error))


async def _move(tasks: Tasks, blocked: Blocked, verb: str, data: dict[str, Any], **columns: Any) -> bool:
    if not await tasks._store.query("get_task_by_uid", uid=blocked.uid):
        return False  # deleted meanwhile
    task = await tasks._attach(blocked.uid)
    return await try_move(task, verb, only_from="pending", data=data, ended=verb, **columns)
