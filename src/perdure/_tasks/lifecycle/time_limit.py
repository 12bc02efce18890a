"""A task that takes longer than its `Config.timeout` allows fails. The time runs from its beginning, pauses and all."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from perdure._ground.clock import moment
from perdure._model import Config
from perdure._store import Store, TaskRow
from perdure._tasks.lifecycle import status_moves as moves
from perdure.errors import InvalidTransition, NotFound, TimedOut

if TYPE_CHECKING:
    from perdure._tasks.task import Task


def deadline_of(config: Config | None, began_at: int) -> int | None:
    """The moment at which a task that began then has taken too long."""
    if config is None or config.timeout is None:
        return None
    return began_at + config.timeout // timedelta(milliseconds=1)


def config_of(store: Store, row: TaskRow) -> Config:
    if row.config is None:
        return Config()
    config: Config = store.unseal(row.uid, "config", row.config, Config)
    return config


async def fail_overdue(task: Task, deadline_at: int) -> TimedOut | None:
    """Have the task fail; why, or None when it had ended already."""
    message = f"task {task.id!r} was to end by {moment(deadline_at).isoformat(timespec='milliseconds')}"
    sealed = task._store.seal(task.uid, "error", {"message": message, "type": "TimedOut"})
    try:
        await moves.move(task, "fail", data={"message": message}, ended="timed out", error=sealed)
    except (InvalidTransition, NotFound):
        return None
    do = "fork it: the copy goes on without a limit; or start another one with more time"
    return TimedOut(message, kept="all that it had recorded", do=do)
