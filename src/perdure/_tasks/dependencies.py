"""Tasks that depend on others: what blocks them.

Owns the question "may this task begin?". perdure/_worker/waits/dependencies.py asks it again and again;
leases.py asks it once when a task is opened without a worker.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from perdure._ground.encoding.codec import stored_json
from perdure._ground.ids import check_id
from perdure._model import Config, Policy, find_circle, what_blocks
from perdure._store import Store, TaskRow
from perdure._tasks.task_row import find_row
from perdure.errors import DependencyCycle, InvalidInput, NotFound


class Blocked(Struct, frozen=True):
    """A task that has not begun because it depends on others."""

    uid: str
    id: str
    policy: Policy
    dependencies: dict[str, str | None]  # their statuses; None: there is no such task yet


async def dependencies_of(store: Store, row: TaskRow) -> dict[str, str | None]:
    """The status of each task this one depends on."""
    found = {id: await find_row(store, id) for id in _needs(row)}
    return {id: other.status if other else None for id, other in found.items()}


async def blockers(store: Store, id: str) -> Sequence[str]:
    """The reasons a task cannot begin, each in a few words; empty if there are none."""
    row = await find_row(store, check_id(id))
    if row is None:
        raise NotFound("task", id, store.place)
    is_to_begin = row.started_at is None and row.status in ("pending", "running")
    return what_blocks(await dependencies_of(store, row)) if is_to_begin else []


async def has_to_wait(store: Store, id: str, depends_on: Sequence[str]) -> bool:
    """True if a new task has to wait for one of these.

    Raises:
        DependencyCycle: it would wait for itself, in a circle of tasks.
        InvalidInput: a text was given, which is a sequence of letters.
    """
    if isinstance(depends_on, str):
        raise InvalidInput(f"depends_on is {depends_on!r}", do=f"give a list of ids: depends_on=[{depends_on!r}]")
    graph: dict[str, Sequence[str]] = {id: [check_id(name) for name in depends_on]}
    statuses: dict[str, str | None] = {}
    ahead = list(graph[id])
    while ahead:
        name = ahead.pop()
        if name in graph:
            continue
        row = await find_row(store, name)
        statuses[name] = row.status if row else None
        # A completed task waits for nothing, whatever it once depended on.
        graph[name] = _needs(row) if row and row.status != "completed" else []
        ahead += graph[name]
    circle = find_circle(graph)
    if id in circle:
        raise DependencyCycle(circle)
    return any(statuses[name] != "completed" for name in depends_on)


async def read_blocked(store: Store, *, settled: bool, after: str = "", limit: int = 500) -> list[Blocked]:
    """Tasks that have not begun because they depend on others, in the order they were created. With `settled`, only
    those whose dependencies have all completed, or of which one has ended otherwise."""
    asked = {"namespace": store.namespace, "settled": int(settled), "after": after, "limit": limit}
    rows = await store.query("read_blocked", **asked)
    found: dict[str, Blocked] = {}
    for uid, id, config, name, status in rows:
        if uid not in found:
            chosen = store.unseal(uid, "config", config, Config) if config is not None else Config()
            found[uid] = Blocked(uid, id, chosen.dependency_policy, {})
        found[uid].dependencies[name] = status
    return list(found.values())


async def blocked_by(store: Store, row: TaskRow) -> Blocked:
    """One task that has not begun, as `read_blocked` would give it."""
    config = store.unseal(row.uid, "config", row.config, Config) if row.config is not None else Config()
    return Blocked(row.uid, row.id, config.dependency_policy, await dependencies_of(store, row))


def _needs(row: TaskRow) -> list[str]:
    found: list[str] = stored_json(row.depends_on, f"what task {row.id!r} depends on", list)
    return found
