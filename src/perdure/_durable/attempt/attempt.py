"""One attempt at a durable function: the entries it has recorded, and how it records new ones.

A step asks its scope's track (calls/step_walk.py). A recorded result is decoded and goes to the code through the gate.
A fresh one is run, recorded by `record`, and goes out the same way.

An attempt has three parts, each with a file of its own: what is under way (`activity`), pausing and stopping early
(`unwinding`), and entries on their way to the disk (`pipeline`). driver.py drives an attempt from its beginning to its
end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from perdure._durable.attempt.activity import Activity
from perdure._durable.attempt.delivery_order import NOBODY, Gate
from perdure._durable.attempt.pipeline import Pipeline
from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.attempt.starting_point import Point
from perdure._durable.attempt.timing import Alarms
from perdure._durable.attempt.unwinding import Paused, Unwinding, making
from perdure._ground.bridge import drive
from perdure._model import LEASE, Entry
from perdure._replay import Cursor, Diverged
from perdure._store import Fence, Store, Write
from perdure._tasks import Task
from perdure.errors import PerdureError, ReplayDiverged

if TYPE_CHECKING:
    from perdure._durable.values import Signature

T = TypeVar("T")
log = logging.getLogger("perdure.durable")

SLOW_SECONDS = 0.1
LEASE_MS = int(LEASE.total_seconds() * 1000)


class _Seldom(Struct, eq=False):
    """Fields that most attempts never use. The first use creates all of them. (A `__getattr__` would do the same, but
    it would make every attribute access on an attempt three times as slow.)"""

    parts: dict[Any, Any] = {}  # what other modules keep for the attempt, by the function that makes it
    patches: dict[str, bool] = {}
    warned: dict[str, None] = {}  # steps that were reported to hold up the loop
    not_awaited: str | None = None  # a step or effect that was called and dropped


class Attempt:
    """The state that all scopes of one attempt share."""

    __slots__ = (
        "__weakref__", "_seldom", "_thread", "activity", "always_replay", "answers", "asks_last", "began", "body",
        "cancelled", "carried", "cursor", "deadline_at", "driver", "effects", "entries", "epoch", "fence", "fresh",
        "is_over", "key", "line", "loop", "made_alarms", "made_gate", "main", "pipeline", "point", "replayed",
        "signature", "store", "task", "task_id", "uid", "unwinding",
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
        self.entries = entries  # as this attempt found them
        self.point = point  # where this attempt begins, if not at the journal's beginning
        self.asks_last = False  # whether the function continues from the state it has saved
        self.cursor = cursor = Cursor(entries, 0 if point is None else point.position)
        self.answers = answers  # by path: how a pause of an earlier attempt was answered
        self.activity = Activity()
        self.unwinding = Unwinding(self, loop, self.activity)
        self.key = f"{store.namespace}\0{fence.task_id}"  # of its writes
        self.pipeline = Pipeline(store, fence, line, cursor.last, self.key)
        self.main = Scope(self, "")
        # With one scope, and nothing recorded, there is nothing to put in order: most short tasks never have a gate.
        self.made_gate: Gate | None = Gate(loop, cursor.in_order(), self, entries) if entries else None
        if self.made_gate is not None:
            self.made_gate.unset = cursor.timers
            if point is not None:  # the code has got everything up to there
                self.made_gate.timers.handed(point.position)
            if cursor.loose:
                self.made_gate.loose = cursor.loose
        self.made_alarms: Alarms | None = None
        self.effects: dict[str, Any] = {}  # by name: the effects this attempt has called, to undo them by
        self.task: Task | None = None  # for data kept beside the journal
        self.deadline_at: int | None = None  # when its task has taken too long
        self.body: asyncio.Task[Any] | None = None
        self.driver: asyncio.Task[Any] | None = None
        self.cancelled = 0  # how often its driver had been cancelled when it began
        self.signature: Signature | None = None  # of the function
        self.carried: bytes | None = None  # the next line's arguments
        self.replayed = self.fresh = 0
        self.always_replay = False  # for tests: unwound after every entry, and begun again (replay_tests.py)
        self.is_over = False  # the function has ended, one way or another
        self._seldom: _Seldom | None = None
        self._thread = threading.get_ident()

    @property
    def seldom(self) -> _Seldom:
        """Fields that most attempts never use, created at the first access."""
        found = self._seldom
        if found is None:
            with making:
                found = self._seldom = self._seldom or _Seldom()
        return found

    @property
    def not_awaited(self) -> str | None:
        """A step or effect that was called and dropped."""
        return None if self._seldom is None else self._seldom.not_awaited

    @property
    def gate(self) -> Gate:
        """The gate that hands out results in order. Created when it is first needed."""
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
        if since is None and gate.has_only_cancelled_calls():  # the code is ahead of all that was recorded
            return None
        if self.made_alarms is not None:
            when -= self.made_alarms.ahead  # by the loop's clock: the code's is as far on as the record
        return gate.timers.set(when, callback, args, context)

    def part(self, make: Callable[[Attempt], T]) -> T:
        """State that another module keeps for this attempt. It is created on first request, from any thread."""
        parts = self.seldom.parts
        found: T | None = parts.get(make)
        if found is None:
            with making:
                found = parts.get(make)
                if found is None:
                    found = parts[make] = make(self)
        return found

    def on_loop(self, act: Callable[[], object]) -> None:
        """Have something done on the attempt's loop: now, or soon if this is another thread."""
        if threading.get_ident() == self._thread:
            act()
        else:
            self.loop.call_soon_threadsafe(act)

    def is_elsewhere(self) -> bool:
        """True if the caller runs in another thread than the attempt's loop: the thread of a plain function."""
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
        if self.unwinding.has_begun:
            raise Paused

    @property
    def is_replaying(self) -> bool:
        """True if some recorded result has not reached the code yet."""
        gate = self.made_gate
        return (gate is not None and gate.is_before_frontier()) or self.cursor.next_unasked() is not None

    @property
    def is_before_frontier(self) -> bool:
        """True if some recorded result has not been handed out yet."""
        gate = self.made_gate
        return gate is not None and gate.is_before_frontier()

    @property
    def is_ending(self) -> bool:
        """True if the attempt itself is being ended. If so, a cancellation does not come from the code."""
        driver = self.driver
        return (
            self.unwinding.has_begun
            or self.is_over
            or self.fence.closed is not None
            or (driver is not None and driver.cancelling() > self.cancelled)
        )

    def has_returned(self) -> bool:
        """True if the function has returned, and only the tasks it left behind are being ended."""
        body = self.body
        is_whole = self.is_over and not self.unwinding.has_begun and self.fence.closed is None
        return is_whole and body is not None and body.done() and not body.cancelled() and body.exception() is None

    # ── scopes ──────────────────────────────────────────────────────────────────────────────────

    def scope_is(self, task: asyncio.Future[Any], scope: Scope) -> None:
        """A task has begun that is this scope."""
        self.activity.alive[id(task)] = (task, scope)
        task.add_done_callback(self._scope_ended, context=NOBODY)

    def _scope_ended(self, task: asyncio.Future[Any]) -> None:
        activity = self.activity
        activity.ordered -= 1
        del activity.alive[id(task)]
        if self.is_ending and not task.cancelled():
            task.exception()  # the attempt ends: asyncio must not report it as never retrieved
        if self.unwinding.pausing:
            self.unwinding.begin_when_still()

    def is_ours(self, context: Context) -> bool:
        scope: Scope | None = context.get(current)
        return scope is not None and scope.attempt is self and not scope.is_body

    def may_call(self, context: Context) -> bool:
        scope: Scope | None = context.get(current)
        return self.is_ours(context) and scope is not None and (scope.track.is_used or scope is self.main)

    def is_alive(self, scope: str) -> bool:
        return self.activity.has_scope(scope)

    # ── recording ───────────────────────────────────────────────────────────────────────────────

    def record(self, entry: Entry, urgent: bool = False) -> tuple[int, Write]:
        """Give an entry its position and queue it (Pipeline.record)."""
        return self.pipeline.record(entry, urgent)

    async def flush(self) -> None:
        """Wait until everything recorded so far is on disk (Pipeline.flush)."""
        await self.pipeline.flush()

    async def may_start(self) -> None:
        """Before a body runs: the attempt is whole, and its entries are not far behind.

        Raises:
            Paused: the attempt is being unwound.
            PerdureError: the attempt was closed.
        """
        unwinding, pipeline = self.unwinding, self.pipeline
        self.check()
        if unwinding.stopping or unwinding.draining:
            await unwinding.suspend(f"~stop {len(unwinding.pausing)}")
        if pipeline.was_suspended():
            await pipeline.check_holder()
        while (oldest := pipeline.behind()) is not None:
            await oldest
            self.check()

    def may_start_here(self) -> None:
        """The same for a plain call, which holds up its thread while it waits."""
        pipeline = self.pipeline
        self.check()
        if self.unwinding.stopping or self.unwinding.draining:
            raise Paused
        if not pipeline.is_near:
            if pipeline.was_suspended():
                drive(pipeline.check_holder())
            while (oldest := pipeline.behind()) is not None:
                pipeline.wait_here(oldest)
                self.check()

    def warn_if_slow(self, name: str, took: float) -> None:
        if took > SLOW_SECONDS and name not in self.seldom.warned and threading.get_ident() == self._thread:
            self.seldom.warned[name] = None
            log.warning("the step %s held the event loop for %.0f ms; make it async", name, took * 1000)

    async def hand_out(self, position: int, *, absorbs: bool = False) -> None:
        """Return when it is this result's turn to reach the code. `absorbs`: its call survives a cancellation, as it
        did when it was recorded."""
        if self.always_replay and position > self.cursor.last:
            self.unwinding.is_restarting = True
            await self.unwinding.suspend(f"~replay {position}")
        if self.activity.ordered > 1:
            await self.gate.turn(position, absorbs=absorbs)
            if self.unwinding.pausing:
                self.unwinding.begin_when_still()
        else:
            self.passed(position)

    def passed(self, position: int) -> None:
        """A result has reached the code, or never will."""
        if self.made_gate is not None:
            self.made_gate.passed(position)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def let_go(self) -> None:
        """Break the reference cycles of an attempt that is over. The garbage collector would take a fifth of the time
        of a short task for them."""
        if self.made_gate is not None:
            self.made_gate.close()
        self.cursor.close()
        self.unwinding.close()
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
        self.unwinding.fail(error)
        return error
