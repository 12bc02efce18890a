"""Let a blocked task begin, fail or be skipped, by what has become of those it depends on.

Several processes may do so at once: one of them moves the task, and the move is refused to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure._model import what_follows
from perdure._store import Store
from perdure._tasks.core import attach
from perdure._tasks.dependencies import Blocked
from perdure._tasks.lifecycle.status_moves import try_move


async def fail_circle(store: Store, blocked: Blocked, circle: Sequence[str]) -> None:
    """Fail a task in a circle: two tasks created at the same moment can wait for each other for ever."""
    await _fail(store, blocked, f"they wait for each other: {' → '.join(circle)}", kind="circle")


async def settle(store: Store, blocked: Blocked) -> str:
    """Do what its dependencies allow or demand; what was done: begin, wait, fail or skip."""
    choice = what_follows(blocked.dependencies, blocked.policy)
    ended = [f"{id} {status}" for id, status in blocked.dependencies.items() if status in ("failed", "cancelled")]
    if choice == "begin":
        return choice if await _move(store, blocked, "begin", {"after": list(blocked.dependencies)}) else "wait"
    if choice == "skip":
        return choice if await _move(store, blocked, "cancel", {"skipped": ", ".join(ended)}) else "wait"
    if choice == "fail":
        return choice if await _fail(store, blocked, ", ".join(ended)) else "wait"
    return choice


async def _fail(store: Store, blocked: Blocked, why: str, *, kind: str = "dependency") -> bool:
    error = {"message": f"it cannot begin: {why}", "kind": kind, "dependencies": blocked.dependencies}
    return await _move(store, blocked, "fail", error, error=store.seal(blocked.uid, "error", error))


async def _move(store: Store, blocked: Blocked, verb: str, data: dict[str, Any], **columns: Any) -> bool:
    if not await store.query("get_task_by_uid", uid=blocked.uid):
        return False  # deleted meanwhile
    task = await attach(store, blocked.uid)
    return await try_move(task, verb, only_from="pending", data=data, ended=verb, **columns)
