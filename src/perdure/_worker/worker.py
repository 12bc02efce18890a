"""`async with app.worker():` — the duties of one process, each in its loop, begun and ended together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from types import TracebackType

from msgspec import Struct, field

from perdure._ground.clock import Clock, SystemClock
from perdure._store import MOVED, WORK, Kinds
from perdure._tasks import Handler, Tasks, store_of
from perdure._worker.awaited_tasks import AwaitedTasks
from perdure._worker.claimer import Claimer, Observer
from perdure._worker.deadlines import Deadlines
from perdure._worker.deliveries import Deliveries
from perdure._worker.dependencies import Dependencies
from perdure._worker.duty import Duty, DutyLoop
from perdure._worker.pollers import Pollers
from perdure._worker.queues import Queue
from perdure._worker.reaper import Reaper
from perdure._worker.registration import Attendance
from perdure._worker.schedules import Schedules
from perdure._worker.spawn_hook import Hook, Spawn
from perdure._worker.stalls import Stalls
from perdure._worker.timers import Timers
from perdure._worker.triggers import Triggers
from perdure.errors import InvalidInput, PerdureError

GRACE = timedelta(seconds=10)
# What follows when a task has another status: pauses until it ends, tasks that depend on it.
_AFTER_MOVES = (Timers, Dependencies, AwaitedTasks)
STALLED_AFTER = timedelta(minutes=15)


class Settings(Struct, frozen=True, kw_only=True):
    """How a worker works; the defaults are for one on a laptop and one in a fleet alike.

    concurrency      tasks at a time
    queues           whose tasks it takes; limits of a queue are set by `app.queue(…)`
    grace            how long a drain lets tasks come to their next safe point
    stalled_after    an attempt that gets no further for so long is flagged; None: never
    restart_stalled  and given to another
    spawn            a command or function that brings up a new worker, called with a task's id when one was lost
    """

    concurrency: int = 100
    queues: Sequence[str] = ("default",)
    limits: dict[str, Queue] = field(default_factory=dict)
    grace: timedelta = GRACE
    stalled_after: timedelta | None = STALLED_AFTER
    restart_stalled: bool = False
    spawn: Hook | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise InvalidInput(f"concurrency is {self.concurrency}; a worker takes at least one task at a time")
        if isinstance(self.queues, str) or not self.queues:
            raise InvalidInput(f"queues is {self.queues!r}", do='name them in a list: queues=["default"]')


class Worker:
    """Carries on tasks until the block ends."""

    def __init__(self, tasks: Tasks, settings: Settings) -> None:
        self._tasks, self._settings = tasks, settings
        self._store = store_of(tasks)
        self._attendance = Attendance(tasks, settings.queues, self.ask_to_drain)
        self._reaper = Reaper(tasks, self.ring, Spawn(settings.spawn) if settings.spawn is not None else None)
        queues, limits = settings.queues, settings.limits
        self._claimer = Claimer(tasks, settings.concurrency, queues, limits, lambda: self._reaper.workers)
        self._loops: list[DutyLoop] = []
        self._running: list[asyncio.Task[None]] = []
        self._draining: asyncio.Task[None] | None = None
        self._stack = ExitStack()
        self.drained = asyncio.Event()

    def _duties(self) -> list[Duty]:
        """All that this worker does, one duty a file."""
        duties: list[Duty] = [self._attendance, self._claimer, self._reaper]
        duties += [Deadlines(self._tasks, self._cancel), Dependencies(self._tasks), AwaitedTasks(self._tasks)]
        duties += [Timers(self._tasks), Pollers(self._tasks), Schedules(self._tasks), Triggers(self._tasks)]
        duties += [Deliveries(self._tasks, handler) for handler in self._tasks._handlers]
        after = self._settings.stalled_after
        if after is not None:
            restart = self._settings.restart_stalled
            duties.append(Stalls(self._tasks, after, self._reaper, restart=restart, cancel=self._cancel))
        return duties

    async def __aenter__(self) -> None:
        clock = self._store.clock
        if self._tasks._handlers:
            await _next_millisecond(clock)
        self._loops = [DutyLoop(duty, clock, calm=isinstance(duty, _AFTER_MOVES)) for duty in self._duties()]
        claiming = next(loop for loop in self._loops if loop.duty is self._claimer)
        self._claimer.ring = claiming.ring
        self._stack.enter_context(self._store.bell.subscribed(Hearing(self._heard).ring))
        self._running = [asyncio.create_task(loop.run(), name=f"perdure {loop.duty.name}") for loop in self._loops]
        self._loop = asyncio.get_running_loop()
        self._tasks._handler_hooks.append(self._serve)
        self._stack.callback(self._tasks._handler_hooks.remove, self._serve)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop taking tasks and give back those under way; others may carry them on at once."""
        for running in (*self._running, *([self._draining] if self._draining is not None else [])):
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._claimer.end()
        for loop in self._loops:
            if isinstance(loop.duty, Deliveries):
                with suppress(PerdureError):  # out of reach, it is left when this process is gone
                    await loop.duty.leave()
        self._stack.close()
        self._reaper.watch.close()
        self._attendance.end()

    def ring(self) -> None:
        """There may be something to do now: every duty looks. From the loop's own thread."""
        for loop in self._loops:
            loop.ring()

    def _heard(self, kinds: Kinds) -> None:
        """Something was written, here or by another process."""
        for loop in self._loops:
            if loop.duty is self._claimer:
                if WORK in kinds or self._claimer.waits_for_room:
                    loop.ring()
            elif MOVED in kinds and isinstance(loop.duty, _AFTER_MOVES):
                loop.ring()

    def _serve(self, handler: Handler) -> None:
        """A handler was made while this worker is at work. From any thread."""
        self._loop.call_soon_threadsafe(self._begin, Deliveries(self._tasks, handler))

    def _begin(self, duty: Duty) -> None:
        loop = DutyLoop(duty, self._store.clock)
        self._loops.append(loop)
        self._running.append(asyncio.create_task(loop.run(), name=f"perdure {duty.name}"))

    def observe(self, observer: Observer) -> None:
        """Have an observer told of every attempt that starts and ends here."""
        self._claimer.observers.append(observer)

    # ── leaving ─────────────────────────────────────────────────────────────────────────────────

    def ask_to_drain(self) -> None:
        """Begin to drain; `drained` is set when nothing is under way any more."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            await self._claimer.drain(self._settings.grace)
        finally:
            self.drained.set()

    def _cancel(self, uid: str) -> None:
        """End the attempt of this worker at a task that is no longer its own."""
        made = self._claimer.passes.get(uid)
        if made is not None and made.work is not None:
            with suppress(RuntimeError):
                made.work.cancel()


async def _next_millisecond(clock: Clock) -> None:
    """Moments are kept in milliseconds: handlers are told what happens in this one, and not what happened before."""
    if isinstance(clock, SystemClock):
        await asyncio.sleep(0.0015)


class Hearing:
    """Rings on their way from other threads to the worker's loop; however many there are, it is woken once."""

    def __init__(self, heard: Callable[[Kinds], None]) -> None:
        self._heard, self._loop = heard, asyncio.get_running_loop()
        self._mutex = threading.Lock()
        self._kinds: Kinds = frozenset()

    def ring(self, kinds: Kinds) -> None:
        with self._mutex:
            before, self._kinds = self._kinds, self._kinds | kinds
        if not before:
            with suppress(RuntimeError):  # the loop was closed meanwhile; nobody is left to wake
                self._loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        with self._mutex:
            kinds, self._kinds = self._kinds, frozenset()
        self._heard(kinds)
