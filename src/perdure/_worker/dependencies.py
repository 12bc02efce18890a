"""Let tasks begin when those they depend on have completed, and do what their policy says when one has not.

A task whose dependencies have not completed is never claimed, so looking late costs time and nothing else. What
follows from what is in perdure/_model/dependency.py.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from perdure._model import find_circle
from perdure._tasks import Blocked, Tasks, fail_circle, read_blocked, settle_blocked

# A task is to begin well within a second of its last dependency's end.
LOOK = timedelta(seconds=0.1)
# Of a worker's time, looking at blocked tasks takes at most about a twentieth.
_SHARE = 20
_PAGE = 500


class Dependencies:
    name = "dependencies"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def round(self) -> timedelta | None:
        began = time.monotonic()
        graph: dict[str, Sequence[str]] = {}
        waiting: dict[str, Blocked] = {}
        after = ""
        while page := await read_blocked(self._tasks._store, after=after, limit=_PAGE):
            for blocked in page:
                if await settle_blocked(self._tasks, blocked) == "wait":
                    graph[blocked.id] = list(blocked.dependencies)
                    waiting[blocked.id] = blocked
            after = page[-1].uid
        circle = find_circle(graph)
        for id in dict.fromkeys(circle):
            await fail_circle(self._tasks, waiting[id], circle)
        return max(LOOK, timedelta(seconds=_SHARE * (time.monotonic() - began)))
