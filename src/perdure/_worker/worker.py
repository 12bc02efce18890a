"""`async with app.worker():` — the duties of one process, each in its loop, begun and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType

from perdure._tasks import Tasks
from perdure._worker.claimer import Claimer
from perdure._worker.dependencies import Dependencies
from perdure._worker.duty import Duty, DutyLoop


class Worker:
    """Carries on tasks until the block ends."""

    def __init__(self, tasks: Tasks, concurrency: int, queues: Sequence[str]) -> None:
        self._tasks = tasks
        self._claimer = Claimer(tasks, concurrency, queues, self.ring)
        self._loops: list[DutyLoop] = []
        self._running: list[asyncio.Task[None]] = []

    def _duties(self) -> list[Duty]:
        """All that this worker does, one duty a file."""
        return [self._claimer, Dependencies(self._tasks)]

    async def __aenter__(self) -> None:
        clock = self._tasks._store.clock
        self._loops = [DutyLoop(duty, clock) for duty in self._duties()]
        self._running = [asyncio.create_task(loop.run(), name=f"perdure {loop.duty.name}") for loop in self._loops]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop taking tasks and give back those under way; others may carry them on at once."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._claimer.end()

    def ring(self) -> None:
        """There may be something to do now: every duty looks. From the loop's own thread."""
        for loop in self._loops:
            loop.ring()
