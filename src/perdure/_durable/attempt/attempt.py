"""One attempt at a durable function: what it has recorded, and what it records now.

The walk of a step: functions.py asks its scope's track; a recorded result is decoded and handed out through
the gate; a fresh one is run, recorded by `record`, and handed out. When results may ride along and when
somebody has to wait for the disk is decided here, by the rules of the committer's barrier and pipeline.
How an attempt is driven from its beginning to its end is in driver.py.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from itertools import filterfalse, takewhile
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from perdure._durable.attempt.delivery_order import NOBODY, Gate
from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.attempt.starting_point import Point
from perdure._durable.attempt.timing import Alarms
from perdure._durable.attempt.unwinding import EffectsUnderWay, Late, Paused, Unwinding, making
from perdure._ground import crash_points as crash
from perdure._ground import envelope
from perdure._ground.bridge import drive
from perdure._model import LEASE, Entry, encode_entry
from perdure._replay import Cursor, Diverged
from perdure._store import Fence, Store, Write
from perdure._tasks import Task
from perdure.errors import LeaseLost, PerdureError, ReplayDiverged

if TYPE_CHECKING:
    from perdure._durable.values import Signature

T = TypeVar("T")
log = logging.getLogger("perdure.durable")

# No body starts while its task has an unflushed entry older than this, or more than so many.
OLDEST_SECONDS = 0.02
MOST_UNFLUSHED = 256
# A result that took no longer than a commit gains nothing by waiting for one.
SHORTEST_WAIT = 0.001
SLOW_SECONDS = 0.1
_letting_go = threading.Lock()  # of writes that are on disk
_is_done = attrgetter("done")
_seal = envelope.sealer_of("entry")  # closed by the committer, which knows the position
LEASE_MS = int(LEASE.total_seconds() * 1000)


class Attempt(Unwinding):
    """What the scopes of one attempt share."""

    __slots__ = (
        "__weakref__", "_params", "_thread", "alive", "always_replay", "answers", "asks_last", "at_work", "began",
        "body", "cancelled", "carried", "cursor", "deadline_at", "driver", "effects", "entries", "epoch", "fence",
        "fresh", "inline", "is_over", "key", "line", "looked_at", "loop", "made_alarms", "made_gate", "main",
        "near_until", "near_up_to", "ordered", "pausing", "point", "replayed", "scopes", "signature", "store", "task",
        "task_id", "touched", "uid", "under_way",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        fence: Fence,
        line: int,
        entries: Sequence[tuple[int, Entry]],
        answers: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        point: Point | None = None,
    ) -> None:
        self.store, self.fence, self.line, self.loop = store, fence, line, loop
        self.task_id, self.uid, self.epoch = fence.task_id, fence.uid, fence.epoch
        self.began = store.clock.now_ms()
        self.looked_at = store.clock.boottime()  # when it was last seen not to have stood still
        self.entries = entries  # as this attempt found them
        self.point = point  # where this attempt begins, if not at the journal's beginning
        self.asks_last = False  # whether the function goes on from the state it has saved
        self.cursor = cursor = Cursor(entries, 0 if point is None else point.position)
        self.answers = answers  # by path: how a pause of an earlier attempt was answered
        self.main = Scope(self, "")
        # With one scope, and nothing recorded, there is nothing to put in order: most short tasks never have a gate.
        self.made_gate: Gate | None = Gate(loop, cursor.in_order(), self, entries) if entries else None
        if self.made_gate is not None:
            self.made_gate.unset = cursor.timers
            if point is not None:  # the code has got everything up to there
                self.made_gate.timers.handed(point.position)
            if cursor.loose:
                self.made_gate.loose = cursor.loose
        self.scopes = 1
        self.ordered = 1  # the scopes, and the timers and threads that may wake one: above one, results go in order
        self.made_alarms: Alarms | None = None
        self.alive: dict[int, tuple[asyncio.Future[Any], Scope]] = {}  # the scopes that are tasks, until they end
        self.effects: dict[str, Any] = {}  # by name: the effects this attempt has called, to undo them by
        self._late: Late | None = None
        self.at_work: EffectsUnderWay | None = None  # its effects, from the first on
        # By path: what a call under way belongs to (a transaction of a kept session), for the note of its entry.
        self.touched: dict[str, dict[str, str | int | float | None]] = {}
        self.under_way: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}  # steps: Call and arguments by path
        self.pausing: dict[str, asyncio.Future[None]] = {}
        self.task: Task | None = None  # for what goes beside the journal
        self.deadline_at: int | None = None  # when its task has taken too long
        self.body: asyncio.Task[Any] | None = None
        self.driver: asyncio.Task[Any] | None = None
        self.cancelled = 0  # how often its driver had been when it began
        self.signature: Signature | None = None  # of the function
        self.carried: bytes | None = None  # the next line's arguments
        self.bodies = 0  # calls under way, from their beginning until their result comes to the gate
        self.inline = 0  # steps of plain functions under way, in threads of their own
        self.replayed = self.fresh = 0
        self.always_replay = False  # for tests: unwound after every entry, and begun again (replay_tests.py)
        self.is_restarting = False  # unwound only to be replayed at once
        self.is_over = False  # the function has ended, one way or another
        self.unwinding = False
        self.stopping = False  # somebody wants the task to end, or to stand still
        self.halted = False  # the kill switch is on
        self.draining = False  # this process wants to leave, and another to go on with the task
        fence.position = cursor.last
        # Until this moment, and up to this position, no entry is far `behind`, and a step need not ask.
        self.near_until = 0.0 if fence.unflushed else perf_counter() + OLDEST_SECONDS
        self.near_up_to = cursor.last + MOST_UNFLUSHED
        self._thread = threading.get_ident()
        self.key = f"{store.namespace}\0{fence.task_id}"  # of its writes
        # Of every entry; a copy is made in half the time that a new dict takes.
        self._params = {
            "uid": self.uid, "line": line, "position": 0, "entry": b"", "epoch": self.epoch, "worker": fence.worker,
        }  # fmt: skip

    @property
    def gate(self) -> Gate:
        """What hands results out in order; from the moment somebody asks for it."""
        gate = self.made_gate
        if gate is None:
            gate = self.made_gate = Gate(self.loop, self.cursor.in_order(), self, self.entries)
            if self.made_alarms is not None:
                gate.alarms = self.made_alarms
        return gate

    @property
    def alarms(self) -> Alarms:
        """The timers and threads of its own code; from the first one on."""
        alarms = self.made_alarms
        if alarms is None:
            alarms = self.made_alarms = Alarms(self)
            if self.made_gate is not None:
                self.made_gate.alarms = alarms
        return alarms

    def dated_timer(
        self, when: float, callback: Any, args: tuple[Any, ...], context: Context | None
    ) -> asyncio.TimerHandle | None:
        """A timer of the code's own, dated by entries; None where timers are recorded."""
        gate, since = self.made_gate, self.cursor.timers_from
        if gate is None or not gate.is_before_frontier() or (since is not None and gate.timers.last >= since):
            return None
        return gate.timers.set(when, callback, args, context)

    def part(self, make: Callable[[Attempt], T]) -> T:
        """What another module keeps for this attempt, made when it is first asked for, by whichever thread."""
        parts = self.late.parts
        found: T | None = parts.get(make)
        if found is None:
            with making:
                found = parts.get(make)
                if found is None:
                    found = parts[make] = make(self)
        return found

    def is_elsewhere(self) -> bool:
        """Whether this is another thread than the attempt's loop has: that of a plain function."""
        return threading.get_ident() != self._thread

    def check(self) -> None:
        """Every call begins with this.

        Raises:
            Paused: the attempt is being unwound.
            PerdureError: the attempt was closed: it has diverged, or lost its lease.
        """
        if self.fence.closed is not None:
            raise self.fence.closed
        if self.is_over:
            raise asyncio.CancelledError  # a task that the function left behind ends here
        if self.unwinding:
            raise Paused

    @property
    def is_replaying(self) -> bool:
        """Whether something recorded has yet to reach the code."""
        gate = self.made_gate
        return (gate is not None and gate.is_before_frontier()) or self.cursor.next_unasked() is not None

    @property
    def is_before_frontier(self) -> bool:
        """Whether some recorded result has its turn yet to come."""
        gate = self.made_gate
        return gate is not None and gate.is_before_frontier()

    @property
    def is_ending(self) -> bool:
        """Whether the attempt itself is being ended: then a cancellation is not the code's own."""
        driver = self.driver
        return (
            self.unwinding
            or self.is_over
            or self.fence.closed is not None
            or (driver is not None and driver.cancelling() > self.cancelled)
        )

    def has_returned(self) -> bool:
        """Whether the function has come to its result, and only what it left behind is being ended."""
        body = self.body
        is_whole = self.is_over and not self.unwinding and self.fence.closed is None
        return is_whole and body is not None and body.done() and not body.cancelled() and body.exception() is None

    # ── scopes ──────────────────────────────────────────────────────────────────────────────────

    def scope_is(self, task: asyncio.Future[Any], scope: Scope) -> None:
        self.alive[id(task)] = (task, scope)
        task.add_done_callback(self._scope_ended, context=NOBODY)

    def _scope_ended(self, task: asyncio.Future[Any]) -> None:
        self.scopes -= 1
        self.ordered -= 1
        del self.alive[id(task)]
        if self.is_ending and not task.cancelled():
            task.exception()  # nobody will look at it, and nobody should be told so
        if self.pausing:
            self.look_for_unwinding()

    def is_ours(self, context: Context) -> bool:
        scope: Scope | None = context.get(current)
        return scope is not None and scope.attempt is self and not scope.is_body

    def may_call(self, context: Context) -> bool:
        scope: Scope | None = context.get(current)
        return self.is_ours(context) and scope is not None and (scope.track.is_used or scope is self.main)

    def is_alive(self, scope: str) -> bool:
        return not scope or any(alive.path == scope for _, alive in self.alive.values())

    # ── recording ───────────────────────────────────────────────────────────────────────────────

    def record(self, entry: Entry, urgent: bool = False) -> tuple[int, Write]:
        """Give an entry its position and queue it; the position is the order in which results go out.

        Raises:
            PerdureError: an earlier write of this attempt failed; nothing more is written.
        """
        store, fence = self.store, self.fence
        committer, params = store.committer, self._params.copy()
        sealed = params["entry"] = _seal(encode_entry(entry), self.uid, store.ring)
        write = Write(committer, "append_entry", params, self.key, len(sealed) + 100, fence, True, perf_counter())
        position = committer.submit_entry(write, params, fence, urgent)
        if crash.armed:
            crash.place("journal.recorded")
        return position, write

    async def flush(self) -> None:
        """Wait until everything recorded so far is on disk.

        Raises:
            LeaseLost: another attempt has taken over.
        """
        newest = self.fence.newest
        if newest is not None:
            await newest
        self.fence.check()

    def behind(self) -> Write | None:
        """The oldest entry that is not on disk, if so much is not that no body may start.

        Asked, it lets go of the writes that are on disk, and says from when on it has to be asked again.
        """
        unflushed, position, now = self.fence.unflushed, self.fence.position, perf_counter()
        if _letting_go.acquire(blocking=False):  # else another thread is at it, and would take too many
            try:
                del unflushed[: len(list(takewhile(_is_done, unflushed)))]
            finally:
                _letting_go.release()
        waiting = list(filterfalse(_is_done, unflushed.copy()))
        if not waiting:
            self.near_until, self.near_up_to = now + OLDEST_SECONDS, position + MOST_UNFLUSHED
            return None
        oldest = waiting[0]
        self.near_until = oldest.since + OLDEST_SECONDS
        self.near_up_to = position + MOST_UNFLUSHED - len(waiting)
        return oldest if now > self.near_until or position > self.near_up_to else None

    async def may_start(self) -> None:
        """Before a body runs: the attempt is whole, and its entries are not far behind.

        Raises:
            Paused: the attempt is being unwound.
            PerdureError: the attempt was closed.
        """
        self.check()
        if self.stopping or self.draining:
            await self.suspend(f"~stop {len(self.pausing)}")
        if self._stood_still():
            await self.check_holder()
        while (oldest := self.behind()) is not None:
            await oldest
            self.check()

    def may_start_here(self) -> None:
        """The same for a plain call, which holds up its thread while it waits."""
        self.check()
        if self.stopping or self.draining:
            raise Paused
        if perf_counter() > self.near_until or self.fence.position > self.near_up_to:
            if self._stood_still():
                drive(self.check_holder())
            while (oldest := self.behind()) is not None:
                self.wait_here(oldest)
                self.check()

    def _stood_still(self) -> bool:
        """Whether so much time has passed since this was asked last that the lease may have been taken."""
        store, before = self.store, self.looked_at
        now = self.looked_at = store.clock.boottime()
        return now - before > store.presence.lease.total_seconds() / 3

    async def check_holder(self) -> None:
        """
        Raises:
            LeaseLost: another attempt has taken over; the call did not run.
        """
        rows = await self.store.query("read_holder", uid=self.uid)
        if not rows or (rows[0][0], rows[0][1]) != (self.epoch, self.fence.worker):
            error = LeaseLost(self.task_id, "another attempt took over while this one stood still")
            self.fence.close(error)
            raise error

    def wait_here(self, write: Write) -> None:
        self.store.committer.wait(write, may_commit=threading.get_ident() != self._thread)
        write.outcome()

    def is_worth_waiting(self, took: float, flush: bool | None) -> bool:
        """Whether a result is waited for: a long step loses little by it, a short one much."""
        if flush is not None:
            return flush
        return took > SHORTEST_WAIT and took > self.store.committer.commit_seconds

    def warn_if_slow(self, name: str, took: float) -> None:
        if took > SLOW_SECONDS and name not in self.late.warned and threading.get_ident() == self._thread:
            self.late.warned[name] = None
            log.warning("the step %s held the event loop for %.0f ms; make it async", name, took * 1000)

    async def hand_out(self, position: int, *, absorbs: bool = False) -> None:
        """Return when it is this result's turn to reach the code. `absorbs`: its call survives a cancellation, as it
        did when it was recorded."""
        if self.always_replay and position > self.cursor.last:
            self.is_restarting = True
            await self.suspend(f"~replay {position}")
        if self.ordered > 1:
            await self.gate.turn(position, absorbs=absorbs)
            if self.pausing:
                self.look_for_unwinding()
        else:
            self.passed(position)

    def passed(self, position: int) -> None:
        """A result has reached the code, or never will."""
        if self.made_gate is not None:
            self.made_gate.passed(position)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def let_go(self) -> None:
        """The attempt is over: what holds it and is held by it in turn is let go. Left to the garbage collector, that
        is a fifth of what a short task costs."""
        if self.made_gate is not None:
            self.made_gate.close()
        self.cursor.close()
        self.body = self.driver = None
        del self.main

    def diverged(self, found: Diverged) -> ReplayDiverged:
        from perdure._durable.attempt.divergence_advice import advice

        do = advice(found, self.entries)
        return ReplayDiverged(self.task_id, found.position, found.recorded, found.asked, do=do)

    def poison(self, error: PerdureError) -> PerdureError:
        """The attempt must not go on, whatever the code makes of the exception."""
        self.fence.close(error)
        if self.made_gate is not None:
            self.made_gate.fail(error)
        for future in self.pausing.values():
            if not future.done():
                future.set_exception(error)
        return error
