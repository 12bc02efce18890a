"""Resume plain tasks that were paused until another task ends.

pollers.py checks such a pause at intervals, like everything a task waits for outside. But a task that ends rings the
bell, so a paused task need not wait for the next check. The id a plain pause waits for is sealed inside the pause:
this duty opens each pause once, and then asks the store which of the awaited tasks have ended.

A pause of a durable function is stored with a topic instead, and timers.py finds it with a query.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import NamedTuple

from perdure._store import OutsideWait
from perdure._tasks import Tasks, awaited_task, store_of, take_after_end
from perdure._worker.duty import Rest
from perdure._worker.waits.timers import LOOK, take_all

_PAGE = 500


class AwaitedTask(NamedTuple):
    pause: bytes
    id: str  # '' when the pause waits for something else


class AwaitedTasks:
    name = "awaited tasks"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._known: dict[str, AwaitedTask] = {}  # by the uid of the paused task

    async def round(self) -> timedelta | Rest | None:
        store, after, found = self._store, "", dict[str, AwaitedTask]()
        asked = {"namespace": store.namespace, "limit": _PAGE}
        while rows := await store.rows(OutsideWait, "outside_waits", **asked, after=after):
            for uid, _, sealed in rows:
                known = self._known.get(uid)
                is_same = known is not None and known.pause == sealed
                found[uid] = known if known and is_same else AwaitedTask(sealed, awaited_task(store, uid, sealed))
            after = rows[-1].uid
            if len(rows) < _PAGE:
                break
        self._known = found
        ids = sorted({awaited.id for awaited in found.values() if awaited.id})
        if ids:
            ended = await store.query("find_ended", namespace=store.namespace, ids=json.dumps(ids))
            over = {id for (id,) in ended}
            await take_all([take_after_end(store, uid) for uid, awaited in found.items() if awaited.id in over])
            if over:
                return LOOK
        return Rest(LOOK)
