"""Give the tasks of dead workers back to the queue.

A process on this machine is proven dead by its pidfd or its start time, and noticed at once. Of a process elsewhere we
can only see its silence: its lease is over when it has missed every beat of one lease on our own clock, while our own
beats reached the store (silence_clock.py). The reaper then frees the lease and writes an event that names the lost
worker. The next claim raises the epoch, so a worker that was slow rather than dead can no longer write.

Owns the question "is this worker lost?". death_policy.py decides what follows a loss.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from perdure._durable import GIVEN_UP_AT_WORK, is_at_work
from perdure._ground.ids import Process, is_proven_dead
from perdure._model import Config, Entry, Holder, Sighting, name_of, open_entry
from perdure._store import HoldingRow, Store, WorkerRow, Write
from perdure._tasks import Tasks, move, store_of, task_by_uid
from perdure._worker.duty import Rest
from perdure._worker.losses.death_policy import Loss, after_loss, progress_mark
from perdure._worker.losses.process_watch import ProcessWatch
from perdure._worker.losses.silence_clock import SilenceClock
from perdure._worker.spawn_hook import SpawnHook
from perdure.errors import InvalidTransition, PerdureError

log = logging.getLogger("perdure.worker")

# A process that registers and dies before it is watched is noticed within 0.2 s.
LOOK = timedelta(seconds=0.15)
DIED, SILENT, STALLED = "its process died", "silent for a whole lease", "stalled"
GIVEN_UP = "given up"
# After this time, a lease of our own without an attempt is forgotten: a new claim has its attempt by then.
FORGOTTEN_SECONDS = 2.0


class Peer(NamedTuple):
    """A process that is registered in the store."""

    id: str
    beats: int
    process: Process
    user: str
    lease_ms: int
    leases: int
    is_worker: bool  # it carries on tasks

    @staticmethod
    def of(row: WorkerRow) -> Peer:
        process = Process(row.host, row.boot_id, row.pid_ns, row.pid, row.pid_start)
        return Peer(row.id, row.beats, process, row.user, row.lease_ms, row.leases, bool(row.knows))


class Reaper:
    name = "reaper"

    def __init__(self, tasks: Tasks, ring: Callable[[], None], spawn: SpawnHook | None = None) -> None:
        self._tasks, self._store, self._ring, self._spawn = tasks, store_of(tasks), ring, spawn
        self._seen: dict[str, Sighting] = {}
        self._silence_clock = SilenceClock()
        self._forgotten: dict[tuple[str, int], float] = {}  # by task uid and epoch: since when
        self.watch = ProcessWatch(ring)
        self.others: list[Peer] = []
        self.workers: set[str] = set()  # the ids of all workers, including this process

    async def round(self) -> timedelta | Rest | None:
        rows = [Peer.of(row) for row in await self._store.rows(WorkerRow, "read_workers")]
        self.others = [other for other in rows if other.id != self._store.presence.worker]
        self.workers = {one.id for one in rows if one.is_worker}
        self._seen = {other.id: self._seen[other.id] for other in self.others if other.id in self._seen}
        own = next((one.beats for one in rows if one.id == self._store.presence.worker), None)
        lease_seconds = self._store.presence.lease.total_seconds()
        listened = self._silence_clock.look(self._store.clock.boottime(), own, lease_seconds)
        self.watch.follow(other.process for other in self.others)
        for other in self.others:
            why = self._why_lost(other, listened)
            if why is not None and other.leases:
                await self._reap(other, why)
            if why == DIED:
                await self._forget(other)
        has_forgotten = False
        for one in rows:
            if one.id == self._store.presence.worker and one.leases > len(self._store.presence.held):
                has_forgotten = True
                await self._give_up_forgotten(one)
        # Silence is only heard by listening. Without a lease elsewhere it means nothing.
        is_idle = not any(other.leases for other in self.others) and not has_forgotten
        return Rest(LOOK) if is_idle else LOOK

    def _why_lost(self, other: Peer, listened: float) -> str | None:
        if is_proven_dead(other.process, same_machine=self._store.engine.is_local):
            return DIED
        if not other.leases:
            self._seen.pop(other.id, None)  # a process without leases need not beat: its silence means nothing
            return None
        holder, lease = Holder(0, other.id, other.beats), timedelta(milliseconds=other.lease_ms)
        sighting = self._seen[other.id] = Sighting.of(holder, listened, self._seen.get(other.id), lease)
        return SILENT if sighting.is_over(listened, lease) else None

    async def _forget(self, other: Peer) -> None:
        """Delete the row of a process proven dead. A process that was only silent keeps its row: proof may come."""
        await Write(self._store.committer, "forget_worker", {"worker": other.id}, key=f"worker {other.id}")

    async def _give_up_forgotten(self, own: Peer) -> None:
        """Free leases that an attempt of this process could not give back because the store was out of reach."""
        now, held = self._store.clock.boottime(), self._store.presence.held
        found = await self._store.rows(HoldingRow, "read_holding", worker=own.id)
        forgotten = {(one.uid, one.epoch): one for one in found if one.uid not in held}
        self._forgotten = {attempt: self._forgotten.get(attempt, now) for attempt in forgotten}
        for attempt, since in self._forgotten.items():
            if now - since >= FORGOTTEN_SECONDS and forgotten[attempt].namespace == self._store.namespace:
                # Another attempt may settle its effects at once, unless one of them still runs in this process.
                why = GIVEN_UP_AT_WORK if is_at_work(attempt[0]) else GIVEN_UP
                await self.lose(forgotten[attempt], own, why)

    # ── one loss ────────────────────────────────────────────────────────────────────────────────

    async def _reap(self, other: Peer, why: str) -> None:
        for held in await self._store.rows(HoldingRow, "read_holding", worker=other.id):
            if held.namespace == self._store.namespace:
                await self.lose(held, other, why)

    async def lose(self, held: HoldingRow, other: Peer, why: str) -> bool:
        """Free one lease. Returns False when another worker has already freed it."""
        entries = await _entries(self._store, held)
        config = _config(self._store, held)
        mark = progress_mark(held.line, held.seq, entries)
        loss = after_loss(held.losses or 0, held.lost_position or 0, mark, config.max_retries)
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

    async def _free(self, held: HoldingRow, other: Peer, why: str, loss: Loss) -> bool:
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

    async def _give_up(self, held: HoldingRow, config: Config, loss: Loss, cause: str) -> None:
        task = await task_by_uid(self._tasks, held.uid)
        try:
            if config.on_failure == "pause":
                await task.pause(cause, reason="human_input", crash_loop=loss.losses)
            else:
                shape = {"message": cause, "type": "CrashLoop", "losses": loss.losses}
                sealed = self._store.seal(held.uid, "error", shape)
                await move(task, "fail", data={"message": cause}, ended="failed", error=sealed)
        except InvalidTransition:
            log.info("task %s has changed its status meanwhile", held.id)


def _config(store: Store, held: HoldingRow) -> Config:
    if held.config is None:
        return Config()
    try:
        found: Config = store.unseal(held.uid, "config", held.config, Config)
    except PerdureError as error:  # this lease and those of other tasks must be freed all the same
        log.warning("cannot read the config of task %s, using the defaults: %s", held.id, error.what)
        return Config()
    return found


async def _entries(store: Store, held: HoldingRow) -> list[Entry]:
    try:
        rows = await store.query("read_journal", uid=held.uid, line=held.line)
        return [open_entry(sealed, held.uid, position, store.ring) for position, sealed in rows]
    except PerdureError as error:  # a missing key: the task's next worker reports it
        log.warning("cannot read the progress of task %s: %s", held.id, error.what)
        return []


def _cause(loss: Loss, entries: list[Entry], who: str, why: str) -> str:
    last = name_of(entries[-1].path) if entries else ""
    place = f"after {last}" if last else "before its first step"
    count = "1 attempt was" if loss.losses == 1 else f"{loss.losses} attempts in a row were"
    return f"{count} lost {place} without progress; the last: {who}, {why}"
