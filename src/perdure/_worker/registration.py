"""Register this worker in the store, announce which functions it knows, and notice when it is asked to drain.

The worker's heart beats while it is registered, even when it holds no lease. So other processes can tell a live worker
from a dead one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta

import perdure
from perdure._durable import announcement, known_versions
from perdure._ground.encoding.json_values import plain
from perdure._store import WorkerRow, Write
from perdure._tasks import Tasks, checks, store_of
from perdure._worker.claims import Queues
from perdure._worker.duty import Rest

LOOK = timedelta(seconds=0.3)
# The request to a worker, and its reply once it claims no more tasks.
DRAIN, DRAINING = "drain", "draining"


class Registration:
    name = "registration"

    def __init__(
        self, tasks: Tasks, queues: Sequence[str], concurrency: int, limits: Queues, drain: Callable[[], None]
    ) -> None:
        self._store, self._drain = store_of(tasks), drain
        self._about = {
            "queues": list(queues),
            "concurrency": concurrency,
            "limits": {name: plain(limits[name]) for name in queues if name in limits},
            "perdure": perdure.__version__,
        }
        self._said = ""
        self._known: list[tuple[str, int, bool]] = []
        self._takes: list[list[object]] = []
        self._is_here = False

    async def round(self) -> timedelta | Rest | None:
        presence = self._store.presence
        await presence.register()
        if not self._is_here:
            self._is_here = True
            presence.hold()
        known = sorted(known_versions())
        if known != self._known:
            self._known, self._takes = known, announcement()
        may = {"functions": known, "takes": self._takes, "commands": checks.may_run_commands()}
        knows = json.dumps({**self._about, **may})
        if knows != self._said:
            await self._write("announce", knows=knows)
            self._said = knows
        rows = await self._store.rows(WorkerRow, "read_workers")
        if any(row.id == presence.worker and row.wish == DRAIN for row in rows):
            self._drain()
            await self._write("ask_worker", wish=DRAINING)
        return Rest(LOOK, has_changed=lambda: sorted(known_versions()) != self._known)

    def end(self) -> None:
        if self._is_here:
            self._is_here = False
            self._store.presence.let_go()

    def _write(self, verb: str, **params: object) -> Write:
        worker = self._store.presence.worker
        return Write(self._store.committer, verb, {"worker": worker, **params}, key=f"worker {worker}")
