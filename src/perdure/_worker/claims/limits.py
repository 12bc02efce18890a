"""Let an attempt begin only when its queue and its key have room, counted over all workers.

A limit has numbered slots. A worker takes a slot by comparing and swapping its row, so only one worker can get it.
No code has to give a slot back: it is free again as soon as the lease no longer belongs to the attempt that took it,
however that attempt ended. A slot of a rate limit is free again when its time has passed.

Owns the question "is there room?". claim_order.py decides which task comes next.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct

from perdure._store import Store, Write
from perdure._worker.claims.queues import UNLIMITED, Queues


class Slot(NamedTuple):
    """A row of read_slots: which attempt took the slot, and the state of that attempt's lease."""

    scope: str
    n: int
    uid: str
    epoch: int
    worker: str
    until: int
    lease_epoch: int | None
    lease_worker: str | None
    is_registered: bool

    def is_taken(self, now_ms: int, longest_ms: int) -> bool:
        if self.until:
            # A slot that ends even later was taken before the clock was set back.
            return now_ms < self.until <= now_ms + longest_ms
        if self.lease_epoch is None:
            return False  # its task was deleted
        if self.lease_epoch < self.epoch:
            return self.is_registered  # about to be claimed, unless the claiming worker is gone
        return (self.lease_epoch, self.lease_worker) == (self.epoch, self.worker)


class Limit(Struct, frozen=True):
    scope: str
    size: int
    window: timedelta | None = None  # only of a rate limit


def limits_of(namespace: str, queues: Queues, queue: str, key: str) -> list[Limit]:
    """The limits that need room for an attempt of this queue and key. A rate comes last: its slots are not returned."""
    chosen = queues.get(queue, UNLIMITED)
    found = []
    if chosen.concurrency is not None:
        found.append(Limit(json.dumps(["queue", namespace, queue]), chosen.concurrency))
    if key:
        found.append(Limit(json.dumps(["key", namespace, queue, key]), chosen.per_key))
    if chosen.rate is not None:
        found.append(Limit(json.dumps(["rate", namespace, queue]), chosen.rate[0], chosen.rate[1]))
    return found


def free_slot(limit: Limit, slots: Iterable[Slot], now_ms: int) -> tuple[int, Slot | None] | None:
    """The number of a free slot and the row seen there; None when the limit is full."""
    seen = {slot.n: slot for slot in slots if slot.scope == limit.scope}
    longest = limit.window // timedelta(milliseconds=1) if limit.window is not None else 0
    if sum(slot.is_taken(now_ms, longest) for slot in seen.values()) >= limit.size:
        return None  # counted over all rows: the limit may have been lowered
    for n in range(1, limit.size + 1):
        slot = seen.get(n)
        if slot is None or not slot.is_taken(now_ms, longest):
            return n, slot
    return None


class Limits:
    def __init__(self, store: Store, queues: Queues) -> None:
        self._store, self._queues = store, queues

    def of(self, queue: str, key: str) -> list[Limit]:
        return limits_of(self._store.namespace, self._queues, queue, key)

    async def enter(self, limits: Sequence[Limit], uid: str, epoch: int) -> Limit | None:
        """Take one slot per limit, for the attempt that will have this epoch.

        Returns the first full limit, and then takes none; None when every limit had room.
        """
        await self._store.presence.register()
        taken: list[tuple[Limit, int]] = []
        for limit in limits:
            n = await self._take(limit, uid, epoch)
            if n is None:
                await self._leave(taken, uid, epoch)
                return limit
            taken.append((limit, n))
        return None

    async def _take(self, limit: Limit, uid: str, epoch: int) -> int | None:
        while True:
            now = await self._store.wall_ms()
            rows = await self._store.query("read_slots", scopes=json.dumps([limit.scope]))
            free = free_slot(limit, [Slot(*row) for row in rows], now)
            if free is None:
                return None
            n, seen = free
            until = now + limit.window // timedelta(milliseconds=1) if limit.window is not None else 0
            params = {
                "scope": limit.scope,
                "n": n,
                "uid": uid,
                "epoch": epoch,
                "until": until,
                "worker": self._store.presence.worker,
                "seen_uid": seen.uid if seen else None,
                "seen_epoch": seen.epoch if seen else None,
                "seen_worker": seen.worker if seen else None,
                "seen_until": seen.until if seen else None,
            }
            if await self._write("take_slot", limit, params) is not None:
                return n

    async def _leave(self, taken: Sequence[tuple[Limit, int]], uid: str, epoch: int) -> None:
        """Free the slots of an attempt that will not begin. Slots of a rate stay counted."""
        for limit, n in taken:
            if limit.window is None:
                await self._free(limit, n, uid, epoch)

    async def tidy(self, limits: Sequence[Limit], uid: str, epoch: int) -> None:
        """Delete the slot rows of keys after an attempt: the number of keys is unbounded."""
        for limit in limits:
            if limit.window is None and json.loads(limit.scope)[0] == "key":
                for n in range(1, limit.size + 1):
                    await self._free(limit, n, uid, epoch)

    async def _free(self, limit: Limit, n: int, uid: str, epoch: int) -> None:
        worker = self._store.presence.worker
        await self._write(
            "free_slot", limit, {"scope": limit.scope, "n": n, "uid": uid, "epoch": epoch, "worker": worker}
        )

    def _write(self, verb: str, limit: Limit, params: dict[str, object]) -> Write:
        return Write(self._store.committer, verb, params, key=f"slot {limit.scope}")
