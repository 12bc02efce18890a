"""Release tasks whose dependencies have completed; apply the policy of those with a dependency that did not.

A task is never claimed before its dependencies have completed, so a late look costs only time. The rules are in
perdure/_model/tasks/dependency.py.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta

from perdure._model import find_circle
from perdure._tasks import Blocked, Tasks, fail_circle, read_blocked, settle_blocked, store_of
from perdure._worker.duty import Rest, wait_after_look

# A task should begin well within a second of the end of its last dependency.
LOOK = timedelta(seconds=0.1)
# Seconds between two searches for circles. A circle arises only among tasks that were made at the same moment.
_CIRCLES_EVERY = 10.0
_PAGE = 500


class Dependencies:
    name = "dependencies"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._circles_at = 0.0

    async def round(self) -> timedelta | Rest | None:
        began = time.monotonic()
        is_idle = True
        async for blocked in self._blocked(settled=True):
            is_idle = False
            await settle_blocked(self._store, blocked)
        took = time.monotonic() - began
        now = self._store.clock.boottime()
        if now >= self._circles_at:
            self._circles_at = now + _CIRCLES_EVERY
            await self._break_circles()
        look = wait_after_look(LOOK, took)
        return Rest(look, timedelta(seconds=self._circles_at - now)) if is_idle else look

    async def _break_circles(self) -> None:
        waiting = {blocked.id: blocked async for blocked in self._blocked(settled=False)}
        circle = find_circle({id: list(blocked.dependencies) for id, blocked in waiting.items()})
        for id in dict.fromkeys(circle):
            await fail_circle(self._store, waiting[id], circle)

    async def _blocked(self, *, settled: bool) -> AsyncIterator[Blocked]:
        after = ""
        while page := await read_blocked(self._store, settled=settled, after=after, limit=_PAGE):
            for blocked in page:
                yield blocked
            after = page[-1].uid
