"""A machine whose time is virtual: it runs many event loops in one thread, one pass of one loop at a time.

Each loop belongs to one simulated process. While some loop has something to run, the machine draws which loop goes
next. When none has, time jumps to the next timer. Nothing waits for real time, and nothing is decided by it.

Owns time, the turns of the loops and the trace. What a process is, is in process.py.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import threading
from asyncio import events
from collections.abc import Callable, Sequence
from contextvars import Context
from datetime import timedelta
from typing import Any
from zlib import crc32

PASS_SECONDS = 20e-6  # how long a pass of a loop takes: code that polls must see time go on
_FIRST_MS = 1_893_456_000_000  # 2030-01-01


class Clock:
    """The clock of perdure in a simulated process; the whole machine shares it."""

    longest_wait = 1.0

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._slept = self._set = 0.0  # seconds that the machine slept; that somebody has set the wall clock by

    def now_ms(self) -> int:
        return _FIRST_MS + int((self._machine.now + self._slept + self._set) * 1000)

    def boottime(self) -> float:
        return self._machine.now + self._slept

    def wait(self, seconds: float, bell: threading.Event) -> bool:
        raise AssertionError("a simulated process has no thread that could wait")

    def advance(self, by: timedelta | None = None, **parts: float) -> None:
        """The machine sleeps: both clocks jump, and timers of event loops do not."""
        self._slept += (by if by is not None else timedelta(**parts)).total_seconds()

    def set_wall(self, by: timedelta) -> None:
        self._set += by.total_seconds()


class _NoFiles:
    """What a loop looks at instead of sockets."""

    def select(self, timeout: float | None) -> list[Any]:
        return []

    def close(self) -> None:
        pass


class Loop(asyncio.BaseEventLoop):
    """An event loop without files and threads, on the machine's time. The machine has it make its passes."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self._selector = _NoFiles()
        self._clock_resolution = 1e-9
        self._thread_id = threading.get_ident()  # it runs, as far as it knows
        self.set_exception_handler(lambda loop, about: machine.complaints.append(about))

    def time(self) -> float:
        return self._machine.now

    def is_ready(self) -> bool:
        return bool(self._ready)  # type: ignore[attr-defined]

    def have_done(self, delay: float, work: Callable[[], None]) -> None:
        """Have what a thread would do done later. It is nobody's timer: perdure, which records those of a durable
        function, does not see it."""
        asyncio.BaseEventLoop.call_at(self, self._machine.now + delay, work, context=Context())

    def next_timer(self) -> float:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            heapq.heappop(scheduled)._scheduled = False
        return float(scheduled[0]._when) if scheduled else math.inf

    def make_pass(self) -> None:
        events._set_running_loop(self)
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            events._set_running_loop(None)

    def drop_all(self) -> None:
        """Its process is dead: nothing that was to run does."""
        for handle in (*self._ready, *self._scheduled):  # type: ignore[attr-defined]
            handle.cancel()

    def end(self) -> None:
        self._thread_id = None
        self.close()

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, event_list: Sequence[Any]) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        raise AssertionError(f"{func} would run in a thread, whose turns no seed decides")


class Turns:
    """One of those who take turns on the machine."""

    loop: Loop
    is_alive = True
    stopped_until = 0.0

    number = 0

    def enter(self) -> None:
        """Called before each pass of its loop."""


class Machine:
    """Time, and the loops that share it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 1_000.0
        self.clock = Clock(self)
        self.members: list[Turns] = []
        self.complaints: list[dict[str, Any]] = []  # what loops told their exception handler
        self.passes = 0
        self.trace = 0  # a digest of every turn: two runs of a seed have the same

    def note(self, *words: object) -> None:
        """Add to the trace."""
        self.trace = crc32(repr(words).encode(), self.trace)

    def run_until(self, moment: float) -> None:
        """Let time pass until `moment`, and everybody run who is due by then."""
        self.members = [one for one in self.members if one.is_alive]
        while self.now <= moment:
            ready, next_due = self._who_is_ready()
            if ready:
                self._give_turn(ready[0] if len(ready) == 1 else self.rng.choice(ready))
            else:
                self.now = min(next_due, moment + PASS_SECONDS)

    def _who_is_ready(self) -> tuple[list[Turns], float]:
        """Those who have something to run now; and when the next of the others has, or goes on."""
        ready, next_due, now = [], math.inf, self.now
        for one in self.members:
            if not one.is_alive:
                continue
            if one.stopped_until > now:
                next_due = min(next_due, one.stopped_until)
            elif one.loop.is_ready() or (due := one.loop.next_timer()) <= now:
                ready.append(one)
            else:
                next_due = min(next_due, due)
        return ready, next_due

    def _give_turn(self, one: Turns) -> None:
        self.passes += 1
        self.now += PASS_SECONDS
        self.trace = crc32(b"%d %f" % (one.number, self.now), self.trace)
        one.enter()
        one.loop.make_pass()
