"""What gc, audit, rotation and doctor share: walking over all tasks, and writing without holding others up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import islice

from perdure._store import FrameRow, Row, Store, TaskRow, Write

# So many tasks or records are read at once.
PAGE = 200
# So many writes go to the committer at once; then whoever else is waiting has a turn.
SLICE = 50


async def every_task(store: Store, namespace: str | None) -> AsyncIterator[TaskRow]:
    """All tasks of a namespace (None: of all), history and archived ones too, oldest first."""
    after = ""
    while page := await store.query("list_all", namespace=namespace, after=after, limit=PAGE):
        for row in page:
            yield TaskRow(*row)
        after = page[-1][0]


async def has_functions(store: Store) -> bool:
    """Whether the store has tables for durable functions: one whose schema is older has none."""
    return await _has_had(store, "0002_functions")


async def has_shelf(store: Store) -> bool:
    """Whether the store has a table for named values."""
    return await _has_had(store, "0003_shelf")


async def has_memory(store: Store) -> bool:
    """Whether the store has a table for what memory layers keep."""
    return await _has_had(store, "0005_memory")


async def has_webhooks(store: Store) -> bool:
    """Whether the store has tables for webhooks."""
    return await _has_had(store, "0016_webhooks")


async def _has_had(store: Store, migration: str) -> bool:
    if store.engine.kind == "memory":
        return True  # it has everything from the start, and no migrations
    return (migration,) in [row[:1] for row in await store.query("read_migrations")]


async def outline(store: Store, uid: str) -> list[FrameRow]:
    """A task's checkpoints without their bytes, oldest first."""
    return [FrameRow(*row) for row in await store.query("read_outline", uid=uid)]


async def in_slices(store: Store, writes: Iterable[Write]) -> list[Row | None]:
    """Commit the writes, some at a time; their answers."""
    answers: list[Row | None] = []
    rest = iter(writes)
    while batch := list(islice(rest, SLICE)):
        for write in batch:
            store.committer.submit(write)
        answers += [await write for write in batch]
    return answers
