"""Give the tasks of dead workers back to the queue.

A process of this machine is proven dead by its pidfd or its start time, and noticed at once. Of a process elsewhere
only its silence can be seen: its lease is over when it has not beaten for a whole lease on our own clock, while our
own beats went through (hearing.py). The lease is then freed, with an event that says who was lost and where; the
next claim raises the epoch, so a worker that was slow rather than dead can no longer write.

Owns the question "is this worker lost?". What follows a loss is decided in death_policy.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from perdure._durable import GIVEN_UP_AT_WORK, is_at_work
from perdure._ground.ids import Process, is_proven_dead
from perdure._model import Config, Entry, Holder, Sighting, name_of, open_entry
from perdure._store import Row, Store, Write
from perdure._tasks import Tasks, move, store_of, task_by_uid
from perdure._worker.death_policy import Loss, after_loss, how_far
from perdure._worker.hearing import Listening
from perdure._worker.process_watch import Watch
from perdure._worker.spawn_hook import Spawn
from perdure.errors import InvalidTransition, PerdureError

log = logging.getLogger("perdure.worker")

# A process that registers and dies before it is watched is noticed within a fifth of a second.
LOOK = timedelta(seconds=0.15)
DIED, SILENT, STALLED = "its process died", "silent for a whole lease", "stalled"
GIVEN_UP = "given up"
# A lease of our own that no attempt of ours knows of: a claim that has just been made is known by then.
FORGOTTEN_SECONDS = 2.0


class Other(NamedTuple):
    """A process that has registered."""

    id: str
    beats: int
    process: Process
    user: str
    lease_ms: int
    leases: int
    is_worker: bool  # it is here to carry on tasks

    @staticmethod
    def of(row: Row) -> Other:
        id, beats, host, boot_id, pid_ns, pid, start, user, lease_ms, _, leases, knows = row[:12]
        return Other(id, beats, Process(host, boot_id, pid_ns, pid, start), user, lease_ms, leases, bool(knows))


class Held(NamedTuple):
    """A row of read_holding."""

    uid: str
    id: str
    namespace: str
    status: str
    version: int
    epoch: int
    line: int
    seq: int
    position: int
    updated_at: int
    function: str | None
    losses: int | None
    lost_position: int | None
    config: bytes | None


class Reaper:
    name = "reaper"

    def __init__(self, tasks: Tasks, ring: Callable[[], None], spawn: Spawn | None = None) -> None:
        self._tasks, self._store, self._ring, self._spawn = tasks, store_of(tasks), ring, spawn
        self._seen: dict[str, Sighting] = {}
        self._listening = Listening()
        self._forgotten: dict[tuple[str, int], float] = {}  # by task uid and epoch: since when
        self.watch = Watch(ring)
        self.others: list[Other] = []
        self.workers: set[str] = set()  # the ids of all that are here to carry on tasks, this process's too

    async def round(self) -> timedelta | None:
        rows = [Other.of(row) for row in await self._store.query("read_workers")]
        self.others = [other for other in rows if other.id != self._store.presence.worker]
        self.workers = {one.id for one in rows if one.is_worker}
        self._seen = {other.id: self._seen[other.id] for other in self.others if other.id in self._seen}
        own = next((one.beats for one in rows if one.id == self._store.presence.worker), None)
        lease_seconds = self._store.presence.lease.total_seconds()
        listened = self._listening.look(self._store.clock.boottime(), own, lease_seconds)
        self.watch.follow(other.process for other in self.others)
        for other in self.others:
            why = self._why_lost(other, listened)
            if why is not None and other.leases:
                await self._reap(other, why)
            if why == DIED:
                await self._forget(other)
        for one in rows:
            if one.id == self._store.presence.worker and one.leases > len(self._store.presence.held):
                await self._give_up_forgotten(one)
        return LOOK

    def _why_lost(self, other: Other, listened: float) -> str | None:
        if is_proven_dead(other.process, same_machine=self._store.engine.is_local):
            return DIED
        if not other.leases:
            self._seen.pop(other.id, None)  # a heart with nothing to keep rests: that is no silence
            return None
        holder, lease = Holder(0, other.id, other.beats), timedelta(milliseconds=other.lease_ms)
        sighting = self._seen[other.id] = Sighting.of(holder, listened, self._seen.get(other.id), lease)
        return SILENT if sighting.is_over(listened, lease) else None

    async def _forget(self, other: Other) -> None:
        """The row of a process proven dead is of no more use. One that was only silent keeps it: proof may come."""
        await Write(self._store.committer, "forget_worker", {"worker": other.id}, key=f"worker {other.id}")

    async def _give_up_forgotten(self, own: Other) -> None:
        """Free what an attempt of this process could not give back, because the store was out of reach."""
        now, held = self._store.clock.boottime(), self._store.presence.held
        found = [Held(*row) for row in await self._store.query("read_holding", worker=own.id)]
        forgotten = {(one.uid, one.epoch): one for one in found if one.uid not in held}
        self._forgotten = {attempt: self._forgotten.get(attempt, now) for attempt in forgotten}
        for attempt, since in self._forgotten.items():
            if now - since >= FORGOTTEN_SECONDS and forgotten[attempt].namespace == self._store.namespace:
                # Another attempt may settle its effects at once, unless one of them is still being done here.
                why = GIVEN_UP_AT_WORK if is_at_work(attempt[0]) else GIVEN_UP
                await self.lose(forgotten[attempt], own, why)

    # ── one loss ────────────────────────────────────────────────────────────────────────────────

    async def _reap(self, other: Other, why: str) -> None:
        for row in await self._store.query("read_holding", worker=other.id):
            held = Held(*row)
            if held.namespace == self._store.namespace:
                await self.lose(held, other, why)

    async def lose(self, held: Held, other: Other, why: str) -> bool:
        """Free one lease; False when somebody else has done so."""
        entries = await _entries(self._store, held)
        config = _config(self._store, held)
        loss = after_loss(
            held.losses or 0, held.lost_position or 0, how_far(held.line, held.seq, entries), config.max_retries
        )
        if not await self._free(held, other, why, loss):
            return False
        who = f"{other.user} on {other.process.host} (pid {other.process.pid})"
        log.warning("task %s lost its worker, %s: %s", held.id, who, why)
        if held.function is not None and held.status == "running":
            if loss.gives_up:
                await self._give_up(held, config, loss, _cause(loss, entries, who, why))
            elif self._spawn is not None:
                await self._spawn.call(held.id)
        self._ring()
        return True

    async def _free(self, held: Held, other: Other, why: str, loss: Loss) -> bool:
        now = await self._store.wall_ms()
        lost = {"worker": other.id, "user": other.user, "host": other.process.host, "pid": other.process.pid}
        data = {**lost, "why": why, "epoch": held.epoch, "losses": loss.losses}
        params = {
            **self._store.event(held.uid, "worker_lost", data),
            "seen_epoch": held.epoch,
            "seen_worker": other.id,
            "seen_beats": other.beats if why == SILENT else None,
            "ended": why,
            "losses": loss.losses,
            "lost_position": loss.mark,
            "not_before": now + loss.wait // timedelta(milliseconds=1) if loss.wait else None,
        }
        return await self._store.verb("reap", held.uid, params, key=held.id) is not None

    async def _give_up(self, held: Held, config: Config, loss: Loss, cause: str) -> None:
        task = await task_by_uid(self._tasks, held.uid)
        try:
            if config.on_failure == "pause":
                await task.pause(cause, reason="human_input", crash_loop=loss.losses)
            else:
                shape = {"message": cause, "type": "CrashLoop", "losses": loss.losses}
                sealed = self._store.seal(held.uid, "error", shape)
                await move(task, "fail", data={"message": cause}, ended="failed", error=sealed)
        except InvalidTransition:
            log.info("task %s has gone on meanwhile", held.id)


def _config(store: Store, held: Held) -> Config:
    if held.config is None:
        return Config()
    try:
        found: Config = store.unseal(held.uid, "config", held.config, Config)
    except PerdureError as error:  # the lease has to be freed all the same, and those of other tasks
        log.warning("cannot read the config of task %s, and use the defaults: %s", held.id, error.what)
        return Config()
    return found


async def _entries(store: Store, held: Held) -> list[Entry]:
    try:
        rows = await store.query("read_journal", uid=held.uid, line=held.line)
        return [open_entry(sealed, held.uid, position, store.ring) for position, sealed in rows]
    except PerdureError as error:  # a key that is not here: its next worker will say so
        log.warning("cannot read how far task %s has come: %s", held.id, error.what)
        return []


def _cause(loss: Loss, entries: list[Entry], who: str, why: str) -> str:
    last = name_of(entries[-1].path) if entries else ""
    place = f"after {last}" if last else "before its first step"
    count = "1 attempt was" if loss.losses == 1 else f"{loss.losses} attempts in a row were"
    return f"{count} lost {place} without getting further; the last: {who}, {why}"
