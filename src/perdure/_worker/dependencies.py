"""Let tasks begin when those they depend on have completed, and do what their policy says when one has not.

A task whose dependencies have not completed is never claimed, so looking late costs time and nothing else. What
follows from what is in perdure/_model/dependency.py.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta

from perdure._model import find_circle
from perdure._tasks import Blocked, Tasks, fail_circle, read_blocked, settle_blocked, store_of
from perdure._worker.duty import patient

# A task is to begin well within a second of its last dependency's end.
LOOK = timedelta(seconds=0.1)
# Circles come about only by tasks that were made at the same moment: they are looked for now and then.
_CIRCLES_EVERY = 10.0
_PAGE = 500


class Dependencies:
    name = "dependencies"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._circles_at = 0.0

    async def round(self) -> timedelta | None:
        began = time.monotonic()
        async for blocked in self._blocked(settled=True):
            await settle_blocked(self._tasks, blocked)
        took = time.monotonic() - began
        now = self._store.clock.boottime()
        if now >= self._circles_at:
            self._circles_at = now + _CIRCLES_EVERY
            await self._break_circles()
        return patient(LOOK, took)

    async def _break_circles(self) -> None:
        waiting = {blocked.id: blocked async for blocked in self._blocked(settled=False)}
        circle = find_circle({id: list(blocked.dependencies) for id, blocked in waiting.items()})
        for id in dict.fromkeys(circle):
            await fail_circle(self._tasks, waiting[id], circle)

    async def _blocked(self, *, settled: bool) -> AsyncIterator[Blocked]:
        after = ""
        while page := await read_blocked(self._store, settled=settled, after=after, limit=_PAGE):
            for blocked in page:
                yield blocked
            after = page[-1].uid
