"""The row of one task, found by its id or its uid."""

from __future__ import annotations

from datetime import timedelta

from perdure._model import Config
from perdure._store import Store, TaskRow
from perdure.errors import NotFound, RecordDamaged


async def find_row(store: Store, id: str) -> TaskRow | None:
    """The row of the task that has this id now, or None.

    Raises:
        RecordDamaged: the row that was found belongs to another id.
    """
    namespace = store.namespace
    row = await store.row(TaskRow, "get_task", namespace=namespace, id=id)
    if row is not None and (row.namespace, row.id, bool(row.is_current)) != (namespace, id, True):
        # An index led to a row that says otherwise. Taken for a missing task, its work would be done a second time.
        raise RecordDamaged(f"the row of task {row.uid}", f"it is found as {id!r}, and says that it is {row.id!r}")
    return row


async def current_row(store: Store, task_id: str, uid: str) -> TaskRow:
    """The task's row as it is now.

    Raises:
        NotFound: the task is gone.
    """
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid)
    if row is None:
        raise NotFound("task", task_id, store.place)
    return row


def config_of(store: Store, row: TaskRow) -> Config:
    """The task's config."""
    if row.config is None:
        return Config()
    config: Config = store.unseal(row.uid, "config", row.config, Config)
    return config


def deadline_of(config: Config | None, began_at: int) -> int | None:
    """The moment at which a task that began then has taken too long."""
    if config is None or config.timeout is None:
        return None
    return began_at + config.timeout // timedelta(milliseconds=1)
