"""Leases for processes that are known only over a network: an agent elsewhere that works through a server.

A holder has its own row among the workers, and its beats can arrive through any process that uses the store. Its lease
belongs to the holder, not to the process that carried the request: when a server dies, another one accepts the holder's
next write. A write by fence names holder and epoch, and the store refuses it after the lease has changed hands.

Its death cannot be proven from here, because its pid can be on another machine. Only its silence counts. When it misses
every beat of a whole lease, others may take its tasks over, as from any worker.

The token is the only secret. The worker's id is a hash of it, so the store never has the token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta
from typing import Any

from msgspec import Struct

from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._store import Fence, HoldingRow, Store, TaskRow, WorkerRow, Write
from perdure._tasks import leases
from perdure._tasks.attempts import end_by_error
from perdure._tasks.leases import Hold, Uncaught
from perdure._tasks.task import Task
from perdure._tasks.task_row import current_row, find_row
from perdure._tasks.tasks import Tasks, task_in_row
from perdure.errors import InvalidInput, LeaseHeld, LeaseLost, NotFound

# The prefix of holders' rows; no other worker's row has it.
PREFIX = "holder-"
_TOKEN = re.compile(r"prd-hold-[A-Za-z0-9_-]{43}")
_FENCE = re.compile(r"([1-9][0-9]{0,17})\.(prd-hold-[A-Za-z0-9_-]{43})")
SHORTEST, LONGEST = timedelta(seconds=1), timedelta(hours=1)
# The row of a holder that has had no lease and no beat for this long is removed.
_FORGOTTEN = timedelta(hours=1)


class RemoteHolder(Struct, frozen=True):
    """A process elsewhere that can hold leases. Keep the token: it is shown once."""

    token: str
    worker: str  # its id among the workers
    lease: timedelta  # it beats at least three times in this time

    def __repr__(self) -> str:
        return f"<RemoteHolder {self.worker}>"  # without the token


class Holders:
    """The holders of a store: processes elsewhere, and the leases they have."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks, self._store = tasks, tasks._store
        self._silent: dict[str, tuple[int, float]] = {}  # by worker: beats, and since when they are as many

    async def register(
        self, *, host: str, pid: int, boot_id: str = "", user: str = "", lease: Duration = "30s"
    ) -> RemoteHolder:
        """Register a process elsewhere. Without a `user` it belongs to the user this process acts for.

        `lease` is the longest allowed silence. The beats travel over a network, through a server that may be restarted.

        Raises:
            InvalidInput: a text cannot be kept, or the lease is not between 1 second and 1 hour.
        """
        length = require_timedelta("lease", lease)
        if not SHORTEST <= length <= LONGEST:
            raise InvalidInput(f"the lease is {lease}; it lies between 1 second and 1 hour")
        if type(pid) is not int or not 0 <= pid < 1 << 31:
            raise InvalidInput(f"{pid!r} is not a pid")
        for name, text in (("host", host), ("boot_id", boot_id), ("user", user)):
            _check_text(name, text)
        if not host:
            raise InvalidInput("the host is empty")
        await self._forget_silent()
        token = f"prd-hold-{secrets.token_urlsafe(32)}"
        params = {
            "host": host,
            # The row has no boot id. So no process on its machine (or, for a local file, on ours) takes the pid as a
            # proof of death: the start time of the process is not known here.
            "boot_id": "",
            "pid_ns": f"~remote {boot_id}",
            "pid": pid,
            "pid_start": 0,
            "user": user or self._store.presence.acting_user,
            "lease_ms": length // timedelta(milliseconds=1),
            "at": self._store.clock.now_ms(),
        }
        worker = _worker_of(token)
        await self._write("register_worker", worker, params)
        return RemoteHolder(token, worker, length)

    async def beat(self, token: str) -> None:
        """The holder lives.

        Raises:
            NotFound: it is not registered any more; register anew, and hold the tasks again.
        """
        worker = _checked(token)
        if await self._write("beat", worker, {}) is None:
            raise _unknown(self._store, worker)

    async def leave(self, token: str) -> None:
        """The holder gives its leases back and is forgotten. One that is not known has left already."""
        worker = _checked(token)
        for held in await self._store.rows(HoldingRow, "read_holding", worker=worker):
            if held.namespace == self._store.namespace:
                await self._release(Fence(held.id, held.uid, held.epoch, worker), "its holder left")
        await self._write("forget_worker", worker, {})

    async def hold_for(self, token: str, task_id: str, *, take_over: bool = False) -> str:
        """The fence of a new attempt at a task, by this holder. If it holds the task already, that attempt's fence.

        Raises:
            NotFound: there is no such task, or the holder is not registered any more.
            LeaseHeld: another attempt is alive. With `take_over` it is ended, and can write no more.
            InvalidTransition: the task is paused, finished, or waits for others.
        """
        worker, store = _checked(token), self._store
        row = await find_row(store, check_id(task_id))
        if row is None:
            raise NotFound("task", task_id, store.place)
        peers = [one for one in await store.rows(WorkerRow, "read_workers") if one.id == worker]
        if not peers:
            raise _unknown(store, worker)
        claimant = {"worker": worker, "host": peers[0].host, "pid": peers[0].pid, "user": peers[0].user}
        while True:
            row = await current_row(store, task_id, row.uid)
            epoch = await leases.claim_for(store, row, claimant, take_over=take_over)
            if epoch is not None:
                return f"{epoch}.{token}"

    async def task(self, task_id: str, fence: str) -> Task:
        """The task as its holder writes it. Each write is refused by the store once the lease has changed hands.

        Raises:
            NotFound: there is no such task.
            InvalidInput: this is not a fence.
        """
        _parts(fence)
        row = await find_row(self._store, check_id(task_id))
        if row is None:
            raise NotFound("task", task_id, self._store.place)
        return await held_in_row(self._tasks, row, fence)

    async def release(self, task_id: str, fence: str) -> bool:
        """Give a task back; False when the lease was lost before, which changes nothing.

        Raises:
            NotFound: there is no such task.
        """
        epoch, worker = _parts(fence)
        row = await find_row(self._store, check_id(task_id))
        if row is None:
            raise NotFound("task", task_id, self._store.place)
        return await self._release(Fence(task_id, row.uid, epoch, worker), "released")

    async def _release(self, fence: Fence, ended: str) -> bool:
        return await leases.releasing(self._store, fence, ended) is not None

    async def _forget_silent(self) -> None:
        """Remove the rows of holders that went away without leaving. One that comes back is told to register."""
        now = self._store.clock.boottime()
        rows = [row for row in await self._store.rows(WorkerRow, "read_workers") if row.id.startswith(PREFIX)]
        before, self._silent = self._silent, {}
        for row in rows:
            beats, since = before.get(row.id, (row.beats, now))
            self._silent[row.id] = (row.beats, since if beats == row.beats else now)
            if not row.leases and now - self._silent[row.id][1] >= _FORGOTTEN.total_seconds():
                await self._write("forget_worker", row.id, {})

    def _write(self, verb: str, worker: str, params: dict[str, Any]) -> Write:
        return Write(self._store.committer, verb, {"worker": worker, **params}, key=f"worker {worker}")


async def held_in_row(tasks: Tasks, row: TaskRow, fence: str) -> Task:
    """As `Holders.task`, for a caller who has just read the task's row."""
    epoch, worker = _parts(fence)
    task = await task_in_row(tasks, row)
    task._hold = Hold(Fence(row.id, row.uid, epoch, worker), task._store)
    return task


async def end_held_by_error(task: Task, error: Uncaught) -> bool:
    """An exception ended the attempt of a handle that `held_in_row` gave: what follows is what the task's config says.
    False when its lease was lost or given back before; then nothing is changed."""
    hold = task._hold
    assert hold is not None
    now = await leases.read_holder(task._store, task.uid)
    if (now.epoch, now.worker) != (hold.fence.epoch, hold.fence.worker):
        return False
    try:
        await end_by_error(task, hold, error)
    except (LeaseLost, LeaseHeld):
        return False
    return True


def is_holder(worker: str) -> bool:
    """True if this worker is a process known only over a network."""
    return worker.startswith(PREFIX)


def _worker_of(token: str) -> str:
    return PREFIX + hashlib.sha256(token.encode()).hexdigest()[:32]


def _checked(token: object) -> str:
    """The worker of a token; the message never shows the token."""
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidInput("this is not the token of a holder", do="register one: `app.holders.register(…)`")
    return _worker_of(token)


def _parts(fence: object) -> tuple[int, str]:
    found = _FENCE.fullmatch(fence) if isinstance(fence, str) else None
    if found is None:
        raise InvalidInput("this is not a fence", do="give the fence that the attempt began with")
    return int(found[1]), _worker_of(found[2])


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"{name} is {type(text).__name__}, not str")
    if len(text) > 255 or not text.isprintable():
        raise InvalidInput(f"{name} is longer than 255 characters, or has some that cannot be shown")


def _unknown(store: Store, worker: str) -> NotFound:
    return NotFound("holder", worker, store.place, do="register it again, then hold its tasks again")
