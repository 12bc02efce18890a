"""Change what a task is to do, while it does it: `task.resume(instruction=…)` outside, `instruction()` inside.

    for number in range(10):
        goal = await instruction("write the report in English")
        await write(number, goal)

Each call is a step that returns the newest instruction. Work done under an older one is recorded with it and stays
done; the next call sees the new one.
"""

from __future__ import annotations

from perdure._durable.attempt import current
from perdure._durable.declare import step
from perdure._store import SignalRow
from perdure._tasks import INSTRUCTION


async def instruction(first: str = "") -> str:
    """The newest instruction the task was given; `first` while there was none, and without a task."""
    if current.get() is None:
        return first
    found = await _newest()
    return first if found is None else found


@step(name="instruction")
async def _newest() -> str | None:
    scope = current.get()
    assert scope is not None
    store, uid = scope.attempt.store, scope.attempt.uid
    given = [row for row in await store.rows(SignalRow, "read_signals", uid=uid) if row.name == INSTRUCTION]
    if not given:
        return None
    newest = max(given, key=lambda row: row.number)
    found: str = store.unseal(uid, "answer", newest.value, str)
    return found
