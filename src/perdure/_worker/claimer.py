"""Find tasks that nobody works on, and carry them on here.

A worker claims only functions and versions its process knows. It looks again when a slot has become free.

Owns the question "what next?". What happens to a claimed task is in perdure/_durable/execute.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from perdure._durable import function_for, known_functions, one_pass
from perdure._store import Row
from perdure._tasks import Tasks, take_lease
from perdure.errors import InvalidTransition, LeaseHeld, NotFound

log = logging.getLogger("perdure.worker")

# A dead local worker is to be noticed within a fifth of a second.
LOOK = timedelta(seconds=0.05)


class Claimer:
    name = "claimer"

    def __init__(self, tasks: Tasks, concurrency: int, queues: Sequence[str], ring: Callable[[], None]) -> None:
        self._tasks, self._concurrency, self._queues = tasks, concurrency, list(queues)
        self._ring = ring
        self._passes: dict[str, asyncio.Task[bytes | None]] = {}

    async def round(self) -> timedelta | None:
        free = self._concurrency - len(self._passes)
        if free <= 0:
            return None
        found = await self._tasks._store.query(
            "find_claimable",
            namespace=self._tasks._store.namespace,
            queues=json.dumps(self._queues),
            functions=json.dumps(sorted(known_functions())),
            now=self._tasks._store.clock.now_ms(),
            limit=free,
        )
        for row in found:
            if len(self._passes) < self._concurrency and row[0] not in self._passes:
                await self._claim(row)
        return LOOK

    async def end(self) -> None:
        """Give back the tasks under way."""
        for task in self._passes.values():
            task.cancel()
        await asyncio.gather(*self._passes.values(), return_exceptions=True)

    async def _claim(self, row: Row) -> None:
        uid, id, name, version, *_ = row
        function = function_for(name, version)
        if function is None:
            return
        try:
            hold = await take_lease(self._tasks._store, id, uid, "", is_exclusive=True)
        except (LeaseHeld, InvalidTransition, NotFound):
            return
        task = await self._tasks._attach(uid, created=False)
        carrying = asyncio.create_task(one_pass(self._tasks, task, hold, function))
        self._passes[uid] = carrying
        carrying.add_done_callback(lambda done: self._ended(uid, id, done))

    def _ended(self, uid: str, id: str, done: asyncio.Task[bytes | None]) -> None:
        self._passes.pop(uid, None)
        self._ring()
        if not done.cancelled() and (error := done.exception()) is not None:
            log.info("task %s ended with %s", id, type(error).__name__)
