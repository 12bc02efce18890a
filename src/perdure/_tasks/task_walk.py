"""The walk over all tasks that gc, audit, rotation and doctor share, and writing without holding up others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import islice

from perdure._store import FrameRow, MigrationRow, Row, Store, TaskRow, Write

# So many tasks or records are read at once.
PAGE = 200
# The most writes to give to the committer at once; then other waiting writers have a turn.
SLICE = 50


async def every_task(store: Store, namespace: str | None) -> AsyncIterator[TaskRow]:
    """All tasks of a namespace (None: of all), history and archived ones too, oldest first."""
    after = ""
    while page := await store.rows(TaskRow, "list_all", namespace=namespace, after=after, limit=PAGE):
        for row in page:
            yield row
        after = page[-1].uid


async def has_functions(store: Store) -> bool:
    """True if the store has tables for durable functions; one with an older schema has none."""
    return await _has_had(store, "0002_functions")


async def has_shelf(store: Store) -> bool:
    """True if the store has a table for named values."""
    return await _has_had(store, "0003_shelf")


async def has_memory(store: Store) -> bool:
    """True if the store has a table for the values of memory layers."""
    return await _has_had(store, "0005_memory")


async def has_webhooks(store: Store) -> bool:
    """True if the store has tables for webhooks."""
    return await _has_had(store, "0016_webhooks")


async def _has_had(store: Store, migration: str) -> bool:
    if store.engine.kind == "memory":
        return True  # it has everything from the start, and no migrations
    return migration in [row.name for row in await store.rows(MigrationRow, "read_migrations")]


async def outline(store: Store, uid: str) -> list[FrameRow]:
    """A task's checkpoints without their bytes, oldest first."""
    return await store.rows(FrameRow, "read_outline", uid=uid)


async def in_slices(store: Store, writes: Iterable[Write]) -> list[Row | None]:
    """Commit the writes, some at a time; their answers."""
    answers: list[Row | None] = []
    rest = iter(writes)
    while batch := list(islice(rest, SLICE)):
        for write in batch:
            store.committer.submit(write)
        answers += [await write for write in batch]
    return answers
