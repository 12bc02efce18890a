"""Measure what has no public name: the journal of a task, written and read.

Every step and effect is written through this.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from perdure._store import Fence, Store, Write
from perdure._tasks import store_of

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._tasks import Task

SMALL = {"step": "summarise", "key": "page-1", "result": 42}


class Journal:
    """The first line of a task's journal, as the attempt that holds the lease writes it."""

    def __init__(self, store: Store, task: Task, fence: Fence) -> None:
        self._store, self._fence, self._uid, self._key = store, fence, task.uid, f"{store.namespace}\0{task.id}"
        self._position = 0

    @classmethod
    async def of(cls, app: Perdure, id: str) -> Journal:
        """The journal of a new task, whose lease this takes."""
        store = store_of(app.tasks)
        task = await app.tasks.open(id)
        await task.checkpoint({})
        return cls(store, task, store.presence.held[task.uid].fence)

    def append(self, value: Any = SMALL, *, urgent: bool = False) -> Write:
        """Append one entry. Await the result to be sure that it is on disk, with all entries before it."""
        self._position += 1
        fence = self._fence
        entry = self._store.seal(self._uid, "entry", value)
        params = {"uid": self._uid, "line": 1, "position": self._position, "entry": entry}
        params.update(epoch=fence.epoch, worker=fence.worker)
        size = 300 + len(entry)
        write = Write(
            self._store.committer, "append_entry", params, key=self._key, size=size, fence=fence, ordered=True
        )
        return self._store.committer.submit(write, urgent=urgent)

    async def read(self) -> list[Any]:
        """Every entry, unsealed and decoded, as a replay needs it."""
        rows = await self._store.query("read_journal", uid=self._uid, line=1)
        return [self._store.unseal(self._uid, "entry", entry) for _, entry in rows]


class Tally:
    """The number of calls to the engine during a measurement, and their total time."""

    def __init__(self) -> None:
        self.reads = self.commits = self.writes = 0
        self.read_seconds = self.commit_seconds = 0.0


@contextmanager
def counted(store: Store) -> Iterator[Tally]:
    engine: Any = store.engine
    query, commit, tally = engine.query, engine.commit, Tally()

    def counted_query(*args: Any) -> Any:
        began = time.perf_counter()
        found = query(*args)
        tally.reads, tally.read_seconds = tally.reads + 1, tally.read_seconds + time.perf_counter() - began
        return found

    def counted_commit(writes: Any) -> Any:
        began = time.perf_counter()
        rows = commit(writes)
        tally.commits, tally.writes = tally.commits + 1, tally.writes + len(rows)
        tally.commit_seconds += time.perf_counter() - began
        return rows

    engine.query, engine.commit = counted_query, counted_commit
    try:
        yield tally
    finally:
        del engine.query, engine.commit
