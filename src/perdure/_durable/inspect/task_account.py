"""What a task has cost and saved, read from its journal without running anything."""

from __future__ import annotations

from msgspec import Struct

from perdure._durable.journal import read_line
from perdure._durable.models import ModelCall, Savings, Spent, model_calls, savings_in, savings_of, spent_in
from perdure._durable.streams import HasTasks, row_of, store_behind
from perdure._model import FINISHED
from perdure._store import EventRow, Store
from perdure._tasks import Task, Tasks


class TaskAccount(Struct, frozen=True, kw_only=True):
    """What a task has cost, and what it did not have to pay again."""

    spent: Spent
    saved: Savings
    calls: list[ModelCall]


async def account_of(app: HasTasks | Tasks | Store, task_id: str | Task) -> TaskAccount:
    """What a task has spent and saved: for `perdure where` and `perdure show`.

    `saved` of a finished task is what its last attempt did not repeat; of any other, what the next one will not.
    """
    store = store_behind(app)
    row = await row_of(store, task_id)
    entries = [entry for _, entry in await read_line(store, row.uid, row.line)]
    saved = None
    if row.status in FINISHED:
        events = await store.query("read_events", uid=row.uid, after=row.event_count - 1, limit=1)
        for found in events:
            saved = savings_in(store.unseal(row.uid, "event", EventRow(*found).body))
    return TaskAccount(spent=spent_in(entries), saved=saved or savings_of(entries), calls=model_calls(entries))


async def stored_bytes(app: HasTasks | Tasks | Store, task_id: str) -> int:
    """The size of a task's journal in bytes, as stored."""
    store = store_behind(app)
    row = await row_of(store, task_id)
    return sum(len(sealed) for _, sealed in await store.query("read_journal", uid=row.uid, line=row.line))
