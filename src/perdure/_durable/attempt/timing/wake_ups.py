"""Timers and threads of the code's own, recorded when they wake it up.

A durable function is replayed by giving it the same results in the same order. Results are not all that wakes code
up: `asyncio.sleep`, `asyncio.timeout`, `wait_for` and `wait(timeout=)` set timers of the event loop, and
`asyncio.to_thread` waits for a thread. So each timer that runs out, and each thread that ends, gets an entry of the
journal and a place in the order. A replay lets it wake the code at that place, whatever the clock says. One without an
entry had not run out when the journal ended: it is kept back until everything recorded has reached the code, and
armed then.

A timer is identified by its scope and its number in it. Only timers set by the function's own code are recorded: not
those of steps and effects, and not perdure's own. Sockets and pipes that the code waits for outside a step have no
place in the order.

Owns which timers and threads are recorded, and when they wake the code. The order itself is in delivery_order.py.
Journals that were written before timers were recorded are replayed by the dates of their entries (replay_timers.py).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.attempt.timing.ready_callbacks import ready_calls
from perdure._ground.encoding import codec
from perdure._model import Entry
from perdure._replay import TIMERS

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

_NOTHING = codec.encode(None)
_NOBODY = Context()  # what runs in it is not the code's
_TIMER: Final = "timer"
_THREAD: Final = "thread"
_WAKES_SLEEPER = asyncio.futures._set_result_unless_cancelled  # type: ignore[attr-defined]
# Modules whose frames say nothing about who sets a timer. An eager task begins inside the factory of scopes.py, and
# under uvloop each callback is run by ready_callbacks.py.
_BETWEEN = (
    "asyncio",
    "uvloop",
    "contextlib",
    "concurrent",
    "perdure._durable.attempt.scopes",
    "perdure._durable.attempt.timing.ready_callbacks",
)
# A loop at work: whatever it has called was woken by it, even when perdure's command line runs the loop.
LOOP_CODE = {
    function.__code__ for function in (asyncio.Handle._run, asyncio.BaseEventLoop.run_forever, asyncio.Runner.run)
}


class Alarms:
    """The timers and threads of one attempt that can still wake its code."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._kept_back: dict[Alarm | _Thread, None] = {}
        self._set: dict[Alarm, None] = {}
        self._began = _clock_of(attempt.loop)()
        self._now: float | None = None
        self._marks = 0
        self.ahead = 0.0  # how many seconds the code's clock is ahead of the loop's: what a replay did not wait

    @property
    def has_kept_back(self) -> bool:
        return bool(self._kept_back)

    def set(self, scope: Scope, when: float, callback: Any, args: tuple[Any, ...], context: Context) -> Alarm:
        """A timer of the code's own."""
        alarm = Alarm(self, when, callback, args, context)
        self._set[alarm] = None
        self._place(scope, _TIMER, alarm)
        return alarm

    def follow(self, scope: Scope, future: asyncio.Future[Any], name: str = _THREAD) -> asyncio.Future[Any]:
        """A future that ends as this one of a thread does, at its place in the order."""
        thread = _Thread(self, future)
        self._place(scope, _THREAD, thread, name)
        return thread.seen

    def _place(self, scope: Scope, op: str, alarm: Alarm | _Thread, name: str = "") -> None:
        attempt = self._attempt
        attempt.activity.ordered += 1
        alarm.path, alarm.op, alarm.scope = scope.next_alarm(name or op), op, scope.path
        position = attempt.cursor.timers.pop(alarm.path, None)
        if position is not None:
            alarm.come(position)
        elif attempt.is_before_frontier:
            if attempt.cursor.timers_from is None:
                self._mark()
            alarm.keep_back()
            self._kept_back[alarm] = None
            attempt.gate.look_soon()
        else:
            if (
                attempt.entries and attempt.fence.position == attempt.cursor.last + self._marks
            ):  # nothing new: it was set before
                alarm.keep_back()
            if attempt.cursor.timers_from is None:
                self._mark()
            alarm.arm()

    def _mark(self) -> None:
        """Say in the journal that timers are recorded in it, and after which position."""
        attempt, gate = self._attempt, self._attempt.made_gate
        # The code can be ahead of the record, and waits only for its own cancellations to have their turn.
        since = 0 if gate is None else gate.timers.last if gate.is_before_frontier() else gate.last_recorded
        note: dict[str, str | int | float | None] = {"from": since}
        attempt.cursor.timers_from = since
        self._marks = 1
        attempt.record(
            Entry("result", TIMERS, f"|{TIMERS}#1", b"", _NOTHING, at=self.now_ms, epoch=attempt.epoch, note=note)
        )

    def arm_all(self) -> None:
        """The end of the journal is reached: timers that had not expired when it ended continue from here."""
        kept, self._kept_back = self._kept_back, {}
        for alarm in kept:
            alarm.arm()

    def arm_blocking(self, scope: str) -> None:
        """Arm the sleeps and threads of this scope, which must ask for the next result and does not.

        The scope waits for one of them, and did not when it was recorded: the code asks whether it is being replayed.
        So they have no place in the order, and wake it whenever they are due.
        """
        for alarm in [alarm for alarm in self._kept_back if alarm.scope == scope and alarm.is_waited_for]:
            del self._kept_back[alarm]
            alarm.is_unordered = True
            alarm.arm()

    def sleeps_until(self, may_call: Callable[[Context], bool]) -> float | None:
        """When the next scope that can still make a call wakes from asyncio.sleep, by the loop's clock."""
        moments = [
            alarm.due
            for alarm in self._set
            if alarm.wakes_sleeper and not alarm.cancelled() and may_call(alarm.context)
        ]
        return min(moments, default=None)

    def has_armed(self, may_call: Callable[[Context], bool]) -> bool:
        """True if a timer is set at the loop by code that can still make a call."""
        return any(alarm.is_armed and may_call(alarm.context) for alarm in self._set)

    # ── for alarms ──────────────────────────────────────────────────────────────────────────────

    @property
    def attempt(self) -> Attempt:
        return self._attempt

    @property
    def loop(self) -> Any:
        return self._attempt.loop

    @property
    def now_ms(self) -> int:
        return self._attempt.store.clock.now_ms()

    def record(self, op: str, path: str) -> int:
        attempt = self._attempt
        position, _ = attempt.record(Entry("result", op, path, b"", _NOTHING, at=self.now_ms, epoch=attempt.epoch))
        return position

    def over(self, alarm: Alarm | _Thread) -> None:
        self._attempt.activity.ordered -= 1
        self._kept_back.pop(alarm, None)
        if isinstance(alarm, Alarm):
            self._set.pop(alarm, None)

    def time(self) -> float:
        """The code's clock, in seconds of the loop's.

        The clock stands still while the code runs from one wait to the next: `asyncio.timeout` reads it twice, and the
        time between must not decide anything. In a replay it follows the dates of the entries.
        """
        if self._now is None:
            self._now = _clock_of(self.loop)() + self.ahead
            if self._attempt.is_before_frontier:
                self.jump_to(self._recorded_time())
            self.loop.call_soon(self._go_on, context=_NOBODY)
        return self._now

    def _go_on(self) -> None:
        self._now = None

    def _recorded_time(self) -> float:
        attempt = self._attempt
        last = None if attempt.made_gate is None else attempt.made_gate.timers.last_at()
        first = first_dated(attempt.entries)
        return self._began + (0.0 if last is None or first is None else (last - first.at) / 1000)

    def jump_to(self, when: float) -> None:
        """Let the code's clock show at least this: a library may check whether its time is really up."""
        now = _clock_of(self.loop)() + self.ahead if self._now is None else self._now
        if when > now:
            self.ahead += when - now
            self._now = None if self._now is None else when


class Alarm(asyncio.TimerHandle):
    """The handle of a timer that the code has set."""

    __slots__ = (
        "_alarms",
        "_armed",
        "_is_over",
        "_kept_at",
        "_position",
        "context",
        "delay",
        "is_unordered",
        "op",
        "path",
        "scope",
    )

    def __init__(self, alarms: Alarms, when: float, callback: Any, args: tuple[Any, ...], context: Context) -> None:
        super().__init__(when, callback, args, alarms.loop, context)
        self._alarms, self.context = alarms, context
        self.delay = when - alarms.time()
        self.is_unordered = False
        self.path = self.op = self.scope = ""
        self._armed: asyncio.TimerHandle | None = None
        self._position: int | None = None
        self._kept_at: int | None = None
        self._is_over = False

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def wakes_sleeper(self) -> bool:
        return self._callback is _WAKES_SLEEPER  # type: ignore[attr-defined]

    @property
    def is_waited_for(self) -> bool:
        """True if the code waits for this timer itself, not for something else with a time-out."""
        return self.wakes_sleeper

    @property
    def is_armed(self) -> bool:
        return self._armed is not None and not self.cancelled()

    @property
    def due(self) -> float:
        """When it runs out by the loop's clock; one that waits for its place does so soon."""
        return self._armed.when() if self._armed is not None else _clock_of(self._alarms.loop)() + 0.05

    def come(self, position: int) -> None:
        self._position = position
        self._alarms.attempt.gate.come(position).add_done_callback(self._turn, context=self.context)

    def keep_back(self) -> None:
        attempt = self._alarms.attempt
        self._kept_at = attempt.gate.timers.last_at()
        first = first_dated(attempt.entries)
        if self._kept_at is None and first is not None and first.op == TIMERS:
            self._kept_at = first.at  # the first thing it does: then the mark was made

    def arm(self) -> None:
        delay = self.delay
        if self._kept_at is not None and self.wakes_sleeper:  # time that has passed is not slept again
            delay = min(delay, max(0.0, delay - (self._alarms.now_ms - self._kept_at) / 1000))
        loop = self._alarms.loop
        self._armed = plain_call_at(loop)(_clock_of(loop)() + delay, self._run_out, context=self.context)

    def cancel(self) -> None:
        if not self.cancelled():
            asyncio.Handle.cancel(self)
            self._end()

    def _run_out(self) -> None:
        if self.cancelled():
            return
        alarms = self._alarms
        if alarms.attempt.is_ending or self.is_unordered:
            self._ring()
            return
        self.come(alarms.record(self.op, self.path))

    def _turn(self, turn: asyncio.Future[None]) -> None:
        if turn.cancelled() or turn.exception() is not None or self.cancelled():
            return
        # A loop can ring a moment too early (uvloop counts whole milliseconds), and the code may check the clock.
        self._alarms.jump_to(self.when())
        self._ring()

    def _ring(self) -> None:
        callback, args = self._callback, self._args  # type: ignore[attr-defined]
        self._end()
        callback(*args)

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._armed is not None:
            self._armed.cancel()
        self._alarms.over(self)
        if self._position is not None and not self._alarms.attempt.is_over:
            self._alarms.attempt.gate.leave(self._position)


class _Thread:
    """Work in another thread that the code waits for."""

    is_waited_for = True

    def __init__(self, alarms: Alarms, future: asyncio.Future[Any]) -> None:
        self._alarms, self._future = alarms, future
        self.seen: asyncio.Future[Any] = alarms.loop.create_future()
        self.path = self.op = self.scope = ""
        self._position: int | None = None
        self._is_kept_back = self._is_over = self.is_unordered = False
        self._context = copy_context()
        self.seen.add_done_callback(self._given_up, context=self._context)
        future.add_done_callback(self._ended, context=_NOBODY)

    def come(self, position: int) -> None:
        self._position = position
        if self._future.done():
            self._alarms.attempt.gate.come(position).add_done_callback(self._turn, context=self._context)

    def keep_back(self) -> None:
        self._is_kept_back = True

    def arm(self) -> None:
        self._is_kept_back = False
        if self._future.done():
            self._ended(self._future)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        alarms = self._alarms
        if self._is_kept_back or self.seen.done():
            return
        if alarms.attempt.is_ending or self.is_unordered:
            self._give()
        elif self._position is not None:
            self.come(self._position)
        else:
            self.come(alarms.record(self.op, self.path))

    def _turn(self, turn: asyncio.Future[None]) -> None:
        if not (turn.cancelled() or turn.exception() is not None):
            self._give()

    def _give(self) -> None:
        future, seen = self._future, self.seen
        if seen.done():
            return
        if future.cancelled():
            seen.cancel()
        elif (error := future.exception()) is not None:
            seen.set_exception(error)
        else:
            seen.set_result(future.result())

    def _given_up(self, seen: asyncio.Future[Any]) -> None:
        """The code has what it waited for, or waits no longer."""
        if self._is_over:
            return
        self._is_over = True
        if not self._future.done():
            self._future.cancel()
        self._alarms.over(self)
        if self._position is not None and not self._alarms.attempt.is_over:
            self._alarms.attempt.gate.leave(self._position)


# ── the loop ─────────────────────────────────────────────────────────────────────────────────────


def install(loop: asyncio.AbstractEventLoop) -> bool:
    """Have timers and threads of this loop that a durable function's own code uses be recorded; False if they are."""
    own = vars(loop)
    is_new = _LISTENING not in own
    if is_new:
        own[_LISTENING] = _Listening(loop, own)
        ready_calls(loop)
    own[_LISTENING].tell_time()
    asyncio.wrap_future = _follow_wrapped
    return is_new


_wrap_future: Final = asyncio.wrap_future


def _follow_wrapped(future: Any, *, loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[Any]:
    """asyncio.wrap_future: the future of a pool's thread, for code that waits for it."""
    wrapped: asyncio.Future[Any] = _wrap_future(future, loop=loop)
    scope = None if wrapped is future else _whose(wrapped.get_loop(), None)
    return wrapped if scope is None else scope.attempt.alarms.follow(scope, wrapped, "wrapped")


_LISTENING: Final = "_perdure_alarms"


class _Listening:
    """The methods of a loop by which code waits for a moment or a thread."""

    def __init__(self, loop: Any, own: dict[str, Any]) -> None:
        self._loop, self._own = loop, own
        self._call_later = loop.call_later
        self.call_at = loop.call_at if isinstance(loop, asyncio.BaseEventLoop) else self._at_by_later
        self._run_in_executor = loop.run_in_executor
        self._time: Callable[[], float] = loop.time
        self._codes_time = self._now
        own["call_at"], own["run_in_executor"] = self._at, self._in_executor
        if not isinstance(loop, asyncio.BaseEventLoop):  # there call_later is call_at
            own["call_later"] = self._later

    def time(self) -> float:
        """The loop's own clock."""
        found: float = self._time() if self._own.get("time") is self._codes_time else self._loop.time()
        return found

    def _at_by_later(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """A timer by the loop's own clock. uvloop's call_at would ask the code's."""
        found: asyncio.TimerHandle = self._call_later(when - self.time(), callback, *args, context=context)
        return found

    def tell_time(self) -> None:
        """Have the code of durable functions ask a clock of its own."""
        if self._own.get("time") is not self._codes_time:
            self._time = self._loop.time
            self._own["time"] = self._codes_time

    def _now(self) -> float:
        scope = current.get()
        return self.time() if scope is None or scope.is_body else scope.attempt.alarms.time()

    def _at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        scope = _whose(self._loop, context)
        if scope is None:
            when -= _ahead(context)
            found: asyncio.TimerHandle = self.call_at(when, callback, *args, context=context)
            return found
        return _set(scope, when, callback, args, context)

    def _later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        scope = _whose(self._loop, context)
        if scope is None:
            found: asyncio.TimerHandle = self._call_later(delay, callback, *args, context=context)
            return found
        return _set(scope, scope.attempt.alarms.time() + delay, callback, args, context)

    def _in_executor(self, executor: Any, function: Any, *args: Any) -> Any:
        future = self._run_in_executor(executor, function, *args)
        scope = _whose(self._loop, None)
        return future if scope is None else scope.attempt.alarms.follow(scope, future)


def _set(
    scope: Scope, when: float, callback: Any, args: tuple[Any, ...], context: Context | None
) -> asyncio.TimerHandle:
    dated = scope.attempt.dated_timer(when, callback, args, context)
    if dated is not None:
        return dated
    return scope.attempt.alarms.set(scope, when, callback, args, copy_context() if context is None else context)


def _listening(loop: Any) -> _Listening:
    found: _Listening = vars(loop)[_LISTENING]
    return found


def plain_call_at(loop: Any) -> Callable[..., asyncio.TimerHandle]:
    call_at: Callable[..., asyncio.TimerHandle] = _listening(loop).call_at
    return call_at


def first_dated(entries: Sequence[tuple[int, Entry]]) -> Entry | None:
    """The first entry that says when it was recorded. The one that a `carry_over` or a rollback adds does not."""
    return next((entry for _, entry in entries if entry.at), None)


def loop_time(loop: Any) -> float:
    """The loop's own clock, whoever asks. `loop.time()` tells a durable function's code the code's clock."""
    listening: _Listening | None = vars(loop).get(_LISTENING)
    found: float = loop.time() if listening is None else listening.time()
    return found


def _clock_of(loop: Any) -> Callable[[], float]:
    return _listening(loop).time


def _whose(loop: Any, context: Context | None) -> Scope | None:
    """The scope whose own code is running. None for steps, for perdure itself and for everything else."""
    scope = current.get() if context is None else context.get(current)
    if scope is None or scope.is_body:
        return None
    attempt = scope.attempt
    if attempt.loop is not loop or attempt.is_ending or _is_perdures_own():
        return None
    return scope


def _ahead(context: Context | None) -> float:
    """How far ahead the clock of the code that sets this timer is."""
    scope = current.get() if context is None else context.get(current)
    alarms = None if scope is None or scope.is_body else scope.attempt.made_alarms
    return 0.0 if alarms is None else alarms.ahead


def _is_perdures_own() -> bool:
    """True if perdure itself sets the timer for its own purposes."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_code not in LOOP_CODE:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_BETWEEN):
            return bool(module.startswith("perdure."))
        frame = frame.f_back
    return False
