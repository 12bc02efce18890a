"""Deliver the events of tasks to a handler: each event at least once, the events of one task in order.

When several workers have the same handler, one of them delivers. When it dies, another takes over. An event whose
handler raised is delivered again, after a longer wait each time; meanwhile the handler gets the events of other tasks.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from datetime import timedelta

from msgspec.structs import replace

from perdure._model import Event, Holder
from perdure._store import WorkerRow
from perdure._tasks import (
    Handler,
    HandlerRecord,
    Kept,
    Tasks,
    Undelivered,
    events_after,
    handlers_of,
    has_had,
    store_of,
    undelivered,
    why_lease_over,
)
from perdure._worker.duty import wait_after_look
from perdure._worker.losses import Peer

log = logging.getLogger("perdure.handlers")

LOOK = timedelta(seconds=0.2)
_PAGE = 200
# How many tasks' events are delivered side by side; the events of one task come one after the other.
_AT_ONCE = 20
# Tasks that ended longer ago are searched only now and then: their last event was delivered long before.
_RECENT_MS, _SWEEP_SECONDS = 600_000, 300.0
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 60.0


# Several workers of one process look like one to other processes; the first of them here delivers.
_here: dict[tuple[int, str, str], Deliveries] = {}


class Deliveries:
    """The delivery of events to one handler."""

    def __init__(self, tasks: Tasks, handler: Handler) -> None:
        self.name = f"handler {handler.name}"
        self._tasks, self._store, self._handler = tasks, store_of(tasks), handler
        self._records = handlers_of(self._store)
        self._place = (id(self._store.engine), self._store.namespace, handler.name)
        self._since = self._store.clock.now_ms()  # when the worker began: it misses no event after this
        self._swept: float | None = None
        self._again: dict[str, tuple[float, int]] = {}  # by task: when to try again, and the number of tries so far

    async def round(self) -> timedelta | None:
        record = await self._post()
        if record is None:
            return LOOK
        now = self._store.clock.boottime()
        is_sweep = self._swept is None or now - self._swept >= _SWEEP_SECONDS
        ended_since = 0 if is_sweep else self._store.clock.now_ms() - _RECENT_MS
        began = time.monotonic()
        while await self._tell_some(record.value, ended_since):
            continue
        if is_sweep:
            self._swept = now
        return wait_after_look(LOOK, time.monotonic() - began)

    async def _tell_some(self, record: HandlerRecord, ended_since: int) -> bool:
        """Deliver one page of events. Returns whether there may be more."""
        limit = _PAGE + len(self._again)
        found = await undelivered(
            self._store, self._handler.name, since=record.since, ended_since=ended_since, limit=limit
        )
        for first in range(0, len(found), _AT_ONCE):
            await asyncio.gather(*(self._tell(task, record) for task in found[first : first + _AT_ONCE]))
        return len(found) == limit

    async def _tell(self, task: Undelivered, record: HandlerRecord) -> None:
        again, tries = self._again.get(task.uid, (0.0, 0))
        if self._store.clock.boottime() < again:
            return
        reached = noted = task.had
        for event in await events_after(self._store, task):
            is_wanted = event.at.timestamp() * 1000 >= record.since and self._handler.wants(event)
            if is_wanted and not await self._told(event, task, tries):
                break
            reached = event.number
            if is_wanted:
                await has_had(self._store, self._handler.name, task, reached)
                noted = reached
        else:
            self._again.pop(task.uid, None)
        if reached > noted:
            await has_had(self._store, self._handler.name, task, reached)

    async def _told(self, event: Event, task: Undelivered, tries: int) -> bool:
        try:
            answer = self._handler.tell(event)
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:
            wait = min(_FIRST_WAIT * 2**tries, _LONGEST_WAIT)
            self._again[task.uid] = (self._store.clock.boottime() + wait, tries + 1)
            what = f"{type(error).__name__}: {error}"
            log.warning("handler %s failed at event %d (%s) of task %s: %s; trying again in %.1f s",
                        self._handler.name, event.number, event.kind, event.task_id, what, wait)  # fmt: skip
            await self._note(f"event {event.number} ({event.kind}) of {event.task_id}: {what}"[:500])
            return False
        if task.uid in self._again:
            del self._again[task.uid]
            await self._note("")
        return True

    async def _note(self, trouble: str) -> None:
        kept = await self._records.get(self._handler.name)
        if kept is not None and kept.value.trouble != trouble:
            await self._records.change(kept, replace(kept.value, trouble=trouble))

    # ── which worker delivers ───────────────────────────────────────────────────────────────────

    async def leave(self) -> None:
        """Let another worker deliver, at once."""
        if _here.get(self._place) is self:
            del _here[self._place]
            kept = await self._records.get(self._handler.name)
            if kept is not None and kept.value.worker == self._store.presence.worker:
                await self._records.change(kept, replace(kept.value, worker=None))

    async def _post(self) -> Kept[HandlerRecord] | None:
        """The handler's record, if this process delivers to the handler."""
        me, handler = self._store.presence.worker, self._handler
        if _here.setdefault(self._place, self) is not self:
            return None
        kept = await self._records.get(handler.name)
        if kept is None:
            new = HandlerRecord(event=handler.event, reason=handler.reason, since=self._since, worker=me)
            await self._records.add(handler.name, new)
            return None
        record = kept.value
        if (record.worker, record.event, record.reason) == (me, handler.event, handler.reason):
            return kept
        if record.worker not in (None, me) and not await self._is_gone(str(record.worker)):
            return None
        await self._records.change(kept, replace(record, worker=me, event=handler.event, reason=handler.reason))
        return None  # the next round reads the record as it then is

    async def _is_gone(self, worker: str) -> bool:
        found = [Peer.of(row) for row in await self._store.rows(WorkerRow, "read_workers") if row.id == worker]
        if not found:
            return True
        other = found[0]
        holder = Holder(0, other.id, other.beats, other.process, other.user, other.lease_ms)
        return why_lease_over(self._store, f"handler {self._handler.name}", holder) is not None
