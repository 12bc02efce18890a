"""The cost and the savings of a task, read from its journal. Nothing is run."""

from __future__ import annotations

from msgspec import Struct

from perdure._durable.journal import read_line
from perdure._durable.models import ModelCall, Savings, Spent, model_calls, savings_in, savings_of, spent_in
from perdure._durable.streams import HasTasks, row_of, store_behind
from perdure._model import FINISHED
from perdure._store import EventRow, Store, TaskRow
from perdure._tasks import Task, Tasks

AFTER_THE_END = 100  # events that a finished task can have after its end: archived, pinned, looked at by its owner


class TaskAccount(Struct, frozen=True, kw_only=True):
    """The cost of a task, and what it did not have to pay again."""

    spent: Spent
    saved: Savings
    calls: list[ModelCall]


async def account_of(app: HasTasks | Tasks | Store, task_id: str | Task) -> TaskAccount:
    """The cost and savings of a task, for `perdure where` and `perdure show`.

    `saved` of a finished task is what its last attempt did not repeat, which is nothing if it had one attempt; of any
    other task, what the next attempt will not repeat.
    """
    store = store_behind(app)
    row = await row_of(store, task_id)
    entries = [entry for _, entry in await read_line(store, row.uid, row.line)]
    saved = await _saved_by_the_last_attempt(store, row) if row.status in FINISHED else savings_of(entries)
    return TaskAccount(spent=spent_in(entries), saved=saved, calls=model_calls(entries))


async def _saved_by_the_last_attempt(store: Store, row: TaskRow) -> Savings:
    """What the end of a task says about it. Other events may have come after the end."""
    after = max(0, row.event_count - AFTER_THE_END)
    events = await store.rows(EventRow, "read_events", uid=row.uid, after=after, limit=AFTER_THE_END)
    for found in reversed(events):
        if found.kind in ("completed", "failed", "cancelled"):
            return savings_in(store.unseal(row.uid, "event", found.body)) or Savings()
    return Savings()


async def stored_bytes(app: HasTasks | Tasks | Store, task_id: str) -> int:
    """The size of a task's journal in bytes, as stored."""
    store = store_behind(app)
    row = await row_of(store, task_id)
    return sum(len(sealed) for _, sealed in await store.query("read_journal", uid=row.uid, line=row.line))
