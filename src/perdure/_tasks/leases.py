"""Take the right to write for a task, keep it, give it back.

A process holds one lease per task, however many handles it has: a notebook that opens a task again continues with the
same lease. An attempt opened with `task.attempt()` is exclusive: while it lasts, no other part of the program can begin
one.

Owns the question "may we have this lease?". Renewing is in perdure/_store/presence.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from shlex import quote
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from perdure._ground.bridge import Nap
from perdure._ground.encoding import codec
from perdure._ground.exception_text import message_of
from perdure._ground.ids import Process, is_proven_dead
from perdure._ground.traceback_text import trace_of
from perdure._model import FINISHED, Holder, Progress, Sighting, refuse_move
from perdure._store import Fence, HolderRow, Store, TaskRow, Write
from perdure._tasks.dependencies import dependencies_of
from perdure._tasks.state import Snapshot
from perdure.errors import InvalidTransition, LeaseHeld, NotFound, PerdureError, TaskBlocked

# Set for a command under `perdure run`: the task's uid, and the pid of who holds its lease only for the command.
HANDED_OVER = "PERDURE_TASK_HOLDER"

# How an attempt ended that had not reached its function.
COULD_NOT_BEGIN = "could not begin"

# The prefix of an attempt's end when its holder is alive.
TAKEN_OVER = "taken over by "

# The time between two checks whether another part of this program has its lease.
_MOMENT = 0.001


class Interruptible(Protocol):
    """An attempt at a durable function that runs in this process."""

    loop: asyncio.AbstractEventLoop

    def interrupt(self) -> None:
        """Stop now. Called on the attempt's loop."""

    def drain(self) -> None:
        """Stop at the next safe point. Called on the attempt's loop."""


class Hold(Struct, eq=False):
    """A lease this process has, and what its writes need to know."""

    fence: Fence
    store: Store  # of the app that took it, and gives it back
    is_exclusive: bool = False
    snapshot: Snapshot | None = None
    progress: Progress | None = None  # as it was last marked, once this process has read or marked it
    attempt: Interruptible | None = None  # the durable function's that runs under it, while it does
    at_end: Callable[[], None] | None = None  # told when nothing is left to do but to write down the task's end


def held(store: Store, uid: str) -> Hold | None:
    """The lease, if this process has it and its attempt was not closed."""
    hold: Hold | None = store.presence.held.get(uid)
    return hold if hold is not None and hold.fence.closed is None else None


def attempt_under_way(store: Store, uid: str) -> Interruptible | None:
    """The attempt at a durable function that runs under this process's lease, if one does."""
    hold: Hold | None = store.presence.held.get(uid)
    return hold.attempt if hold is not None else None


async def read_holder(store: Store, uid: str) -> Holder:
    row = await store.row(HolderRow, "read_holder", uid=uid)
    if row is None:
        raise NotFound("task", uid, store.place)
    if row.host is None:
        return Holder(row.epoch, row.worker)
    process = Process(row.host, row.boot_id or "", row.pid_ns or "", row.pid or 0, row.pid_start or 0)
    return Holder(row.epoch, row.worker, row.beats or 0, process, row.user or "", row.lease_ms or 0)


def why_over(store: Store, uid: str, holder: Holder) -> str | None:
    """Why the lease may be taken, or None while its holder must be assumed alive."""
    presence = store.presence
    if holder.is_free or holder.worker == presence.worker:
        presence.seen.pop(uid, None)
        return "released"
    if holder.process is not None and os.environ.get(HANDED_OVER) == f"{uid}:{holder.process.pid}":
        return "handed over to what it started"
    if holder.process is not None and is_proven_dead(holder.process, same_machine=store.engine.is_local):
        return "its process died"
    now = store.clock.boottime()
    lease = timedelta(milliseconds=holder.lease_ms) if holder.lease_ms else presence.lease
    sighting = presence.seen[uid] = Sighting.of(holder, now, presence.seen.get(uid), lease)
    return "silent for a whole lease" if sighting.is_over(now, lease) else None


async def take(
    store: Store,
    task_id: str,
    uid: str,
    agent: str,
    *,
    is_exclusive: bool = False,
    is_new: bool = False,
    take_over: bool = False,
) -> Hold:
    """The lease of a task, for this process. Of one that `is_new` it is tried without looking first; to `take_over`
    is to take it from a holder that lives.

    Raises:
        LeaseHeld: another attempt is alive.
        InvalidTransition: the task is paused, finished, or waits for others, so it cannot be worked on now.
    """
    if is_new and held(store, uid) is None and uid not in store.presence.taking:
        # A state written a moment ago is most likely unchanged; if not, the claim is refused, and we look.
        hold = await _claim(store, task_id, uid, agent, Holder(0, None), "running", "released", is_exclusive)
        if hold is not None:
            return hold
    while True:
        while uid in store.presence.taking:  # another part of this program is about to have it, or not
            await Nap(_MOMENT)
        hold = held(store, uid)
        if hold is not None:
            if is_exclusive and hold.is_exclusive:
                raise _held_here(store, task_id)
            hold.is_exclusive = hold.is_exclusive or is_exclusive
            return hold
        row = await store.row(TaskRow, "get_task_by_uid", uid=uid)
        if row is None:
            raise NotFound("task", task_id, store.place)
        status = await _workable_status(store, row)
        holder = await read_holder(store, uid)
        former = why_over(store, uid, holder)
        if former is None and take_over:
            former = f"{TAKEN_OVER}{store.presence.acting_user} on {store.presence.process.host}"
        if former is None:
            raise _held_by(task_id, holder)
        if held(store, uid) is not None or uid in store.presence.taking:
            continue  # since we looked
        hold = await _claim(store, task_id, uid, agent, holder, status, former, is_exclusive)
        if hold is not None:
            return hold


async def take_free(store: Store, seen: Sequence[tuple[str, str, int]]) -> list[Hold | None]:
    """Take the leases of tasks under way that were seen free, given as task id, uid and epoch: all together, with one
    wait. The result is None where another process was quicker. A caller that stops waiting does not keep them."""
    presence = store.presence
    await presence.register()
    columns = holder_columns(store)
    claims: dict[str, tuple[Write, Hold]] = {}
    for task_id, uid, epoch in seen:
        if uid not in presence.taking and held(store, uid) is None:
            params = {**store.event(uid, "attempt started", _begun(epoch + 1)), "seen_epoch": epoch, **columns}
            hold = Hold(Fence(task_id, uid, epoch + 1, presence.worker), store, is_exclusive=True)
            claims[uid] = store.verb("claim_free", uid, params, key=task_id), hold
    presence.taking |= claims.keys()
    try:
        for write, _ in claims.values():
            store.committer.submit(write, urgent=False)
        for write, _ in reversed(claims.values()):  # with the last one, those before it are done
            await write
    except BaseException:
        for write, hold in claims.values():
            if write.queued and not (write.done and write.row is None):
                store.committer.submit(releasing(store, hold.fence, "interrupted while it was taken"))
        raise
    finally:
        presence.taking -= claims.keys()
    for uid, (write, hold) in claims.items():
        if write.row is not None:
            presence.held[uid] = hold
            presence.seen.pop(uid, None)
            presence.hold()
    return [claims[uid][1] if uid in claims and claims[uid][0].row is not None else None for _, uid, _ in seen]


@lru_cache(maxsize=64)
def _begun(epoch: int) -> bytes:
    """The event text for an attempt that begins."""
    return codec.encode({"epoch": epoch})


async def _workable_status(store: Store, row: TaskRow) -> str:
    if row.status == "paused":
        raise InvalidTransition(
            row.id, row.status, "be worked on", do=f"resume it first: perdure resume {quote(row.id)}"
        )
    if row.status in FINISHED:
        raise refuse_move(row.id, row.status, "an attempt")
    if row.started_at is None and row.depends_on != "[]":
        missing = {id: status for id, status in (await dependencies_of(store, row)).items() if status != "completed"}
        if missing:
            raise TaskBlocked(row.id, row.status, missing)
    return row.status


async def _claim(
    store: Store, task_id: str, uid: str, agent: str, holder: Holder, status: str, former: str, is_exclusive: bool
) -> Hold | None:
    await store.presence.register()  # first: from here on nothing is awaited but the claim itself
    write = _claiming(store, task_id, uid, agent, holder, status, former, holder_columns(store))
    return await taking(store, write, task_id, uid, holder.epoch + 1, is_exclusive)


def _claiming(
    store: Store,
    task_id: str,
    uid: str,
    agent: str,
    holder: Holder,
    status: str,
    former: str,
    claimant: Mapping[str, Any],
) -> Write:
    """The write that takes the lease, as it was seen, for who claims it (the columns of `holder_columns`)."""
    taken = not holder.is_free and holder.worker != claimant["worker"]
    data: dict[str, Any] = {"epoch": holder.epoch + 1}
    if taken:
        data |= {"former": former, "from": _told_of(holder)}
    params = {
        **store.event(uid, "attempt taken over" if taken else "attempt started", data, agent=agent),
        "seen_epoch": holder.epoch,
        "seen_worker": holder.worker,
        "before": status,
        "former": former if taken else "superseded",
        "agent": agent,
        **claimant,
    }
    return store.verb("claim", uid, params, key=task_id)


async def claim_for(store: Store, row: TaskRow, claimant: Mapping[str, Any], *, take_over: bool = False) -> int | None:
    """Take the lease for a process that works through this one; the epoch. None when it has changed since the look.

    Raises:
        LeaseHeld: another attempt is alive, and is not to be taken over.
        InvalidTransition: the task is paused, finished, or waits for others.
    """
    status = await _workable_status(store, row)
    holder = await read_holder(store, row.uid)
    if holder.worker == claimant["worker"]:
        return holder.epoch
    here = held(store, row.uid)
    former = None if here is not None and here.is_exclusive else why_over(store, row.uid, holder)
    if former is None and take_over:
        former = f"{TAKEN_OVER}{claimant['user']} on {claimant['host']}"
    if former is None:
        raise _held_by(row.id, holder)
    write = _claiming(store, row.id, row.uid, row.agent, holder, status, former, claimant)
    return holder.epoch + 1 if await write is not None else None


def _told_of(holder: Holder) -> dict[str, Any]:
    """The former holder of the lease, for the history."""
    process = holder.process
    return {"user": holder.user, "host": process.host, "pid": process.pid} if process else {}


async def taking(
    store: Store, write: Write, task_id: str, uid: str, epoch: int = 1, is_exclusive: bool = True
) -> Hold | None:
    """The lease this write takes, unless it is refused. A caller that stops waiting does not keep it.

    Meanwhile no other part of this program may try: it would see that the lease belongs to this process, and take it
    for an abandoned one.
    """
    presence = store.presence
    if uid in presence.taking:
        return None
    hold = Hold(Fence(task_id, uid, epoch, presence.worker), store, is_exclusive)
    presence.taking.add(uid)
    try:
        if await write is None:
            return None
    except asyncio.CancelledError:
        if write.queued:
            store.committer.submit(releasing(store, hold.fence, "interrupted while it was taken"))
        raise
    finally:
        presence.taking.discard(uid)
    presence.held[uid] = hold
    presence.seen.pop(uid, None)
    presence.hold()
    return hold


# The holder column of a new task that has no holder.
NOBODY: dict[str, Any] = {"worker": None, "host": None, "pid": None, "user": None}


def holder_columns(store: Store) -> dict[str, Any]:
    """The same of this process, which has to be registered."""
    presence = store.presence
    process = presence.process
    return {"worker": presence.worker, "host": process.host, "pid": process.pid, "user": presence.user}


class Uncaught(NamedTuple):
    """An exception that ended an attempt, in texts: it can have been raised on another machine."""

    type: str
    message: str
    why: str  # in one line
    traceback: str


def uncaught(error: BaseException) -> Uncaught:
    return Uncaught(type(error).__name__, message_of(error), in_words(error), trace_of(error))


async def release(store: Store, hold: Hold, ended: str, error: BaseException | Uncaught | None = None) -> None:
    """Give the lease back; harmless when it is lost already. The error that is the reason is told in its event."""
    forget(store, hold)
    if hold.fence.closed is None:
        await releasing(store, hold.fence, ended, error)


def releasing(store: Store, fence: Fence, ended: str, error: BaseException | Uncaught | None = None) -> Write:
    """The write that gives a lease back; its answer is None when the lease was lost before."""
    data = {"ended": ended}
    if error is not None:
        told = error if isinstance(error, Uncaught) else uncaught(error)
        data |= {"why": told.why, "error": told.type, "traceback": told.traceback}
    params = {**store.event(fence.uid, "attempt ended", data), "ended": ended}
    params.update(epoch=fence.epoch, worker=fence.worker)
    return store.verb("release", fence.uid, params, key=fence.task_id)


def in_words(error: BaseException) -> str:
    """The event in one line."""
    return error.what if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"


def forget(store: Store, hold: Hold) -> None:
    """The lease is no longer ours to renew."""
    presence, uid = store.presence, hold.fence.uid
    if presence.held.get(uid) is hold:
        del presence.held[uid]
        presence.let_go()


async def release_all(store: Store) -> None:
    if store.presence.process.pid != os.getpid():
        return  # in the child of a fork: they are the parent's
    for hold in list(store.presence.held.values()):
        if hold.store is store:
            await release(store, hold, "released")


def _held_by(task_id: str, holder: Holder) -> LeaseHeld:
    process = holder.process
    return LeaseHeld(task_id, holder.user or "?", process.host if process else "?", process.pid if process else 0)


def _held_here(store: Store, task_id: str) -> LeaseHeld:
    presence = store.presence
    return LeaseHeld(task_id, f"{presence.user}, in this very process", presence.process.host, presence.process.pid)
