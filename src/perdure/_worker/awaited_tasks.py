"""Resume plain tasks that were paused until another task ends.

Such a pause is looked at every so often, like any other thing outside (pollers.py). But a task that ends rings, so
it need not wait for that look. What a plain pause waits for is sealed with it: each one is read once, and then the
store is asked which of the awaited tasks have ended.

The same pause of a durable function is a question with a topic, which timers.py finds by a query.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import NamedTuple

from perdure._tasks import Tasks, awaited_task, store_of, take_after_end
from perdure._worker.timers import LOOK, taken

_PAGE = 500


class Wait(NamedTuple):
    pause: bytes
    task: str  # its id, or ''


class AwaitedTasks:
    name = "awaited tasks"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._known: dict[str, Wait] = {}  # by uid

    async def round(self) -> timedelta | None:
        store, after, found = self._store, "", dict[str, Wait]()
        while rows := await store.query("outside_waits", namespace=store.namespace, after=after, limit=_PAGE):
            for uid, _, sealed in rows:
                known = self._known.get(uid)
                is_same = known is not None and known.pause == sealed
                found[uid] = known if known and is_same else Wait(sealed, awaited_task(store, uid, sealed))
            after = rows[-1][0]
            if len(rows) < _PAGE:
                break
        self._known = found
        ids = sorted({wait.task for wait in found.values() if wait.task})
        if ids:
            ended = await store.query("find_ended", namespace=store.namespace, ids=json.dumps(ids))
            over = {id for (id,) in ended}
            await taken([take_after_end(self._tasks, uid) for uid, wait in found.items() if wait.task in over])
        return LOOK
