"""Notice attempts that are alive but make no progress.

A heart beats in its own thread, so a worker whose event loop hangs still looks alive. Its task shows the stall: no new
entry, checkpoint or progress for `stalled_after`. Every worker looks at all held tasks, so others notice a worker that
is stuck itself. An attempt is flagged once, with an event; with `restart_stalled` another worker then gets the task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._store import EventRow, HoldingRow, WorkerRow
from perdure._tasks import Tasks, store_of
from perdure._worker.duty import Rest
from perdure._worker.losses.reaper import STALLED, Peer, Reaper

log = logging.getLogger("perdure.worker")

# How often to look within the time after which an attempt counts as stalled.
_LOOKS = 10
LOOK = timedelta(seconds=1)


class LastChange(NamedTuple):
    mark: tuple[int, ...]
    since: float


class Stalls:
    name = "stalls"

    def __init__(
        self, tasks: Tasks, after: timedelta, reaper: Reaper, *, restart: bool, cancel: Callable[[str], None]
    ) -> None:
        self._store, self._after, self._reaper = store_of(tasks), after, reaper
        self._restart, self._cancel = restart, cancel
        self._seen: dict[tuple[str, int], LastChange] = {}
        self._flagged: set[tuple[str, int]] = set()

    async def round(self) -> Rest:
        now, seen = self._store.clock.boottime(), {}
        for row in await self._store.rows(WorkerRow, "read_workers"):
            other = Peer.of(row)
            holding = await self._store.rows(HoldingRow, "read_holding", worker=other.id) if other.leases else []
            for held in holding:
                if held.namespace == self._store.namespace and held.status == "running":
                    seen[held.uid, held.epoch] = self._look(held, now)
                    await self._judge(held, other, seen[held.uid, held.epoch], now)
        self._seen = seen
        self._flagged &= seen.keys()
        return Rest(LOOK, self._after / _LOOKS)

    def _look(self, held: HoldingRow, now: float) -> LastChange:
        mark = (held.line, held.seq, held.position, held.updated_at)
        before = self._seen.get((held.uid, held.epoch))
        return before if before is not None and before.mark == mark else LastChange(mark, now)

    async def _judge(self, held: HoldingRow, other: Peer, seen: LastChange, now: float) -> None:
        attempt = (held.uid, held.epoch)
        if now - seen.since < self._after.total_seconds() or attempt in self._flagged:
            return
        if not await self._is_flagged(held) and not await self._flag(held, other, now - seen.since):
            return  # the task has moved on: look again
        self._flagged.add(attempt)
        if self._restart and await self._reaper.lose(held, other, STALLED):
            self._cancel(held.uid)

    async def _flag(self, held: HoldingRow, other: Peer, seconds: float) -> bool:
        who = {"user": other.user, "host": other.process.host, "pid": other.process.pid}
        data = {"epoch": held.epoch, "seconds": round(seconds), **who}
        params = {**self._store.event(held.uid, "stalled", data), "epoch": held.epoch, "worker": other.id}
        row = await self._store.verb("flag_attempt", held.uid, {**params, "version": held.version}, key=held.id)
        if row is not None:
            log.warning("task %s has made no progress for %.0f s", held.id, seconds)
        return row is not None

    async def _is_flagged(self, held: HoldingRow) -> bool:
        for event in await self._store.rows(EventRow, "read_events", uid=held.uid, after=0, limit=1 << 31):
            if event.kind == "stalled":
                body = envelope.unseal(event.body, kind="event", bound_to=held.uid, ring=self._store.ring)
                if codec.decode(body)["epoch"] == held.epoch:
                    return True
        return False
