"""Have a task fail, with an error that says how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure._ground.exception_text import message_of
from perdure._ground.traceback_text import trace_of
from perdure._tasks.core import TaskCore, do_once
from perdure._tasks.lifecycle.status_moves import move
from perdure._tasks.lifecycle.time_limit import take_lease
from perdure._tasks.once import Once, once_of
from perdure._tasks.task_row import current_row
from perdure.errors import InvalidInput


async def fail(task: TaskCore, error: object, *, once: str | None = None) -> None:
    """Have the task fail; `error` says how."""
    shape = error_of(error)
    asked = once_of(once, "fail", shape)
    await do_once(task, asked, lambda: _fail(task, shape, asked))


async def _fail(task: TaskCore, shape: dict[str, Any], once: Once | None) -> None:
    sealed = task._store.seal(task.uid, "error", shape)
    row = await current_row(task._store, task.id, task.uid)
    hold = await take_lease(task) if row.status == "running" else task._hold
    await move(task, "fail", hold=hold, ended="failed", data={"message": shape["message"]}, error=sealed, once=once)


def error_of(error: object) -> dict[str, Any]:
    """An error as it is kept: a mapping with a message, whatever else it says."""
    if isinstance(error, BaseException):
        shape = {"message": message_of(error) or type(error).__name__, "type": type(error).__name__}
        trace = trace_of(error)
        return {**shape, "traceback": trace} if trace else shape
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str) or not error["message"]:
        raise InvalidInput(
            "an error is a mapping with a message", do='write fail({"message": "what went wrong", …}) or fail("…")'
        )
    return dict(error)
