"""Which durable function a task carries out, as a call that people read: checkout(order='ord_981')."""

from __future__ import annotations

from msgspec import Struct

from perdure._durable.inspect.where_report import shown_arguments
from perdure._durable.journal import shown_value
from perdure._ground.exception_text import in_one_line
from perdure._store import CallRow
from perdure._tasks import Tasks, store_of

_SHOWN = 200  # characters


class TaskCall(Struct, frozen=True, kw_only=True):
    """The durable function a task carries out."""

    function: str
    version: int
    queue: str
    text: str  # with its arguments, without secrets, cut; "" for a caller who may not read them


async def call_of_task(tasks: Tasks, uid: str) -> TaskCall | None:
    """The call of the task with this uid; None if it has no durable function."""
    store = store_of(tasks)
    row = await store.row(CallRow, "get_call", uid=uid)
    if row is None:
        return None
    given = shown_arguments(store, uid, row.arguments)
    said = [f"{name}={shown_value(value)}" for name, value in given.items()] if isinstance(given, dict) else ["…"]
    text = in_one_line(f"{row.function}({', '.join(said)})")
    return TaskCall(
        function=row.function,
        version=row.version,
        queue=row.queue,
        text=text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…",
    )
