"""`async with app.worker():` — run all duties of one process, each in its own loop, and end them together."""

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
from perdure._tasks import Handler, Tasks, handlers_in, store_of
from perdure._worker.claims import Claimer, Observer, Queue
from perdure._worker.delivery import Deliveries, WebhookDuty, sender_of
from perdure._worker.duty import Duty, DutyLoop
from perdure._worker.losses import Deadlines, Reaper, Stalls
from perdure._worker.registration import Registration
from perdure._worker.spawn_hook import Hook, SpawnHook
from perdure._worker.waits import AwaitedTasks, Dependencies, Pollers, Schedules, Timers, Triggers
from perdure.errors import InvalidInput, PerdureError

GRACE = timedelta(seconds=10)
# Duties that look again when a task changes its status: pauses until a task ends, and dependencies.
_AFTER_MOVES = (Timers, Dependencies, AwaitedTasks)
STALLED_AFTER = timedelta(minutes=15)


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a worker. The defaults fit one worker on a laptop and a fleet of them.

    concurrency      how many tasks to work on at a time
    queues           the queues to take tasks from; `app.queue(…)` sets the limits of a queue
    grace            how long a drain waits for tasks to reach their next safe point
    stalled_after    flag an attempt that makes no progress for this long; None: never
    restart_stalled  give the task of a flagged attempt to another worker
    spawn            a command or function that starts a new worker; called with the id of a task that lost its worker
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
        self._registration = Registration(
            tasks, settings.queues, settings.concurrency, settings.limits, self.ask_to_drain
        )
        self._reaper = Reaper(tasks, self.ring, SpawnHook(settings.spawn) if settings.spawn is not None else None)
        queues, limits = settings.queues, settings.limits
        self._claimer = Claimer(tasks, settings.concurrency, queues, limits, lambda: self._reaper.workers)
        self._loops: list[DutyLoop] = []
        self._running: list[asyncio.Task[None]] = []
        self._draining: asyncio.Task[None] | None = None
        self._stack = ExitStack()
        self.drained = asyncio.Event()

    def _duties(self) -> list[Duty]:
        """All duties of this worker; each has a file of its own."""
        duties: list[Duty] = [self._registration, self._claimer, self._reaper]
        duties += [Deadlines(self._tasks, self._cancel), Dependencies(self._tasks), AwaitedTasks(self._tasks)]
        duties += [Timers(self._tasks), Pollers(self._tasks), Schedules(self._tasks), Triggers(self._tasks)]
        duties += [Deliveries(self._tasks, handler) for handler in handlers_in(self._tasks)]
        duties.append(WebhookDuty(self._tasks, sender_of(self._store)))
        after = self._settings.stalled_after
        if after is not None:
            restart = self._settings.restart_stalled
            duties.append(Stalls(self._tasks, after, self._reaper, restart=restart, cancel=self._cancel))
        return duties

    async def __aenter__(self) -> None:
        clock = self._store.clock
        if handlers_in(self._tasks):
            await _next_millisecond(clock)
        self._loops = [self._loop_of(duty) for duty in self._duties()]
        for loop in self._loops:
            if isinstance(loop.duty, WebhookDuty):
                loop.duty.wake = loop.ring
        claiming = next(loop for loop in self._loops if loop.duty is self._claimer)
        self._claimer.ring = claiming.ring
        self._stack.enter_context(self._store.bell.subscribed(BellRelay(self._heard).ring))
        self._running = [asyncio.create_task(loop.run(), name=f"perdure {loop.duty.name}") for loop in self._loops]
        self._loop = asyncio.get_running_loop()
        self._stack.enter_context(handlers_in(self._tasks).served_by(self._serve))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop claiming and give back the tasks under way. Other workers can carry them on at once."""
        for running in (*self._running, *([self._draining] if self._draining is not None else [])):
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._claimer.end()
        for loop in self._loops:
            if isinstance(loop.duty, Deliveries | WebhookDuty):
                with suppress(PerdureError):  # store out of reach: the post is free once this process is gone
                    await loop.duty.leave()
        self._stack.close()
        self._reaper.watch.close()
        self._registration.end()

    def ring(self) -> None:
        """Make every duty look for work now. Call it from the loop's own thread."""
        for loop in self._loops:
            loop.ring()

    def _heard(self, kinds: Kinds) -> None:
        """Another thread or process wrote something: wake the duties it concerns, and those that rest."""
        for loop in self._loops:
            loop.stir()
            if loop.duty is self._claimer:
                if WORK in kinds or self._claimer.waits_for_room:
                    loop.ring()
            elif MOVED in kinds and isinstance(loop.duty, _AFTER_MOVES):
                loop.ring()

    def _loop_of(self, duty: Duty) -> DutyLoop:
        bell = self._store.bell
        is_calm = isinstance(duty, _AFTER_MOVES)
        return DutyLoop(duty, self._store.clock, calm=is_calm, hears=lambda: bell.is_heard)

    def _serve(self, handler: Handler) -> None:
        """Start delivering to a handler that was declared while this worker runs. Called from any thread."""
        self._loop.call_soon_threadsafe(self._begin, Deliveries(self._tasks, handler))

    def _begin(self, duty: Duty) -> None:
        loop = self._loop_of(duty)
        self._loops.append(loop)
        self._running.append(asyncio.create_task(loop.run(), name=f"perdure {duty.name}"))

    def observe(self, observer: Observer) -> None:
        """Call `observer` for every attempt that starts or ends in this worker."""
        self._claimer.observers.append(observer)

    # ── leaving ─────────────────────────────────────────────────────────────────────────────────

    def ask_to_drain(self) -> None:
        """Begin to drain. `drained` is set once no task is under way."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            await self._claimer.drain(self._settings.grace)
        finally:
            self.drained.set()

    def _cancel(self, uid: str) -> None:
        """Cancel this worker's attempt at a task it no longer owns."""
        claimed = self._claimer.claimed.get(uid)
        if claimed is not None and claimed.work is not None:
            with suppress(RuntimeError):
                claimed.work.cancel()


async def _next_millisecond(clock: Clock) -> None:
    """Wait for the next millisecond, the unit in which moments are stored: a handler gets only events from now on."""
    if isinstance(clock, SystemClock):
        await asyncio.sleep(0.0015)


class BellRelay:
    """Passes rings from other threads to the worker's loop. Many rings in a row wake the loop once."""

    def __init__(self, heard: Callable[[Kinds], None]) -> None:
        self._heard, self._loop = heard, asyncio.get_running_loop()
        self._mutex = threading.Lock()
        self._kinds: Kinds = frozenset()

    def ring(self, kinds: Kinds) -> None:
        with self._mutex:
            before, self._kinds = self._kinds, self._kinds | kinds
        if not before:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        with self._mutex:
            kinds, self._kinds = self._kinds, frozenset()
        self._heard(kinds)
