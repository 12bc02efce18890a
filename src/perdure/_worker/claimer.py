"""Find tasks that nobody works on, and carry them on here.

A worker claims only functions and versions its process knows. Between two looks it waits a little, or until
a pass has ended and its slot is free.

Owns the question "what next?". What happens to a claimed task is in perdure/_durable/execute.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from types import TracebackType

from perdure._durable import function_for, known_functions, one_pass
from perdure._store import Row
from perdure._tasks import Tasks, take_lease
from perdure.errors import InvalidTransition, LeaseHeld, NotFound, PerdureError

log = logging.getLogger("perdure.worker")

# A dead local worker is to be noticed within a fifth of a second.
LOOK_SECONDS = 0.05


class Worker:
    """`async with app.worker():` carries on tasks until the block ends."""

    def __init__(self, tasks: Tasks, concurrency: int, queues: Sequence[str]) -> None:
        self._tasks, self._concurrency, self._queues = tasks, concurrency, list(queues)
        self._passes: dict[str, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._looking = asyncio.create_task(self._look())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop taking tasks and give back those under way; others may carry them on at once."""
        if self._looking is not None:
            self._looking.cancel()
        running = [*self._passes.values(), *([self._looking] if self._looking else [])]
        for task in self._passes.values():
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            self._bell.clear()
            try:
                await self._claim_some()
            except PerdureError as error:
                log.warning("cannot look for tasks: %s", error.what)
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._bell.wait()
            except TimeoutError:
                continue

    async def _claim_some(self) -> None:
        free = self._concurrency - len(self._passes)
        if free <= 0:
            return
        found = await self._tasks._store.query(
            "find_claimable",
            namespace=self._tasks._store.namespace,
            queues=json.dumps(self._queues),
            functions=json.dumps(sorted(known_functions())),
            limit=free + len(self._passes),
        )
        for row in found:
            if len(self._passes) < self._concurrency and row[0] not in self._passes:
                await self._claim(row)

    async def _claim(self, row: Row) -> None:
        uid, id, name, version, _ = row
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

    def _ended(self, uid: str, id: str, done: asyncio.Task[None]) -> None:
        self._passes.pop(uid, None)
        self._bell.set()
        if not done.cancelled() and (error := done.exception()) is not None:
            log.info("task %s ended with %s", id, type(error).__name__)
