"""Let an attempt begin only when its queue and its key have room, counted over all workers.

A limit gives out numbered slots. A slot is taken by comparing and swapping its row, so of any number of workers one
gets it. It is never given back by hand: a slot taken for an attempt is free again as soon as the lease is no longer
that attempt's, however it ended. A slot of a rate is free again when its time has passed.

Owns the question "is there room?". Whose turn it is, is asked in claimer.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct

from perdure._store import Store, Write
from perdure._worker.queues import UNLIMITED, Queues


class Slot(NamedTuple):
    """A row of read_slots: who took it and for what, and how the lease it was taken for stands."""

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
            # One that lies further off was taken before the clock was set back.
            return now_ms < self.until <= now_ms + longest_ms
        if self.lease_epoch is None:
            return False  # its task is gone
        if self.lease_epoch < self.epoch:
            return self.is_registered  # about to be claimed, unless whoever meant to has gone
        return (self.lease_epoch, self.lease_worker) == (self.epoch, self.worker)


class Limit(Struct, frozen=True):
    scope: str
    size: int
    window: timedelta | None = None  # of a rate


def limits_of(namespace: str, queues: Queues, queue: str, key: str) -> list[Limit]:
    """What an attempt of this queue and key has to find room in. A rate comes last: its slots are not given back."""
    chosen = queues.get(queue, UNLIMITED)
    found = []
    if chosen.concurrency is not None:
        found.append(Limit(json.dumps(["queue", namespace, queue]), chosen.concurrency))
    if key:
        found.append(Limit(json.dumps(["key", namespace, queue, key]), chosen.per_key))
    if chosen.rate is not None:
        found.append(Limit(json.dumps(["rate", namespace, queue]), chosen.rate[0], chosen.rate[1]))
    return found


def free_place(limit: Limit, slots: Iterable[Slot], now_ms: int) -> tuple[int, Slot | None] | None:
    """A number that is free and what was seen in it; None when there is no room."""
    seen = {slot.n: slot for slot in slots if slot.scope == limit.scope}
    longest = limit.window // timedelta(milliseconds=1) if limit.window is not None else 0
    if sum(slot.is_taken(now_ms, longest) for slot in seen.values()) >= limit.size:
        return None  # also after the limit was made smaller
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
        """Take a slot in each for the attempt that will have this epoch; the one without room, and none taken."""
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
            place = free_place(limit, [Slot(*row) for row in rows], now)
            if place is None:
                return None
            n, seen = place
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
        """The attempt will not be made after all. What a rate has given out stays counted."""
        for limit, n in taken:
            if limit.window is None:
                await self._free(limit, n, uid, epoch)

    async def tidy(self, limits: Sequence[Limit], uid: str, epoch: int) -> None:
        """After an attempt: keys come and go without number, and their rows with them."""
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
