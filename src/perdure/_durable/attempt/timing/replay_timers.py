"""The code's own timers in a replay: none that is known to have run out later runs out too early.

A replay does not wait for the steps again, but the code's own sleeps do take their time. So a time-out of three seconds
set in a replay could expire while another branch still sleeps on its way to a call that was in time before; and
`asyncio.timeout` has no place in the journal. But entries know when they were recorded. A timer set when the code gets
a result is dated by that result, and held back until everything recorded by then has reached the code.

This is for journals written before timers were recorded (wake_ups.py). While one is replayed, each timer is dated when
it is set, however many others there are. This module decides which timers expire and which are held back; when the code
is at rest, and what it gets next, is in delivery_order.py. A timer is not dated, and never held back, if it was set at
another moment, or before the attempt that recorded the next result had its first result: such timers keep their
distances. A date can be wrong, because clocks are set. So nothing is held back for much longer than the next result
took to arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

from msgspec import Struct

from perdure._durable.attempt.timing.wake_ups import first_dated, loop_time, plain_call_at
from perdure._model import Entry, scope_of
from perdure._replay import WAKING

_EXACT_MS = 20  # about so exactly is known when a timer ran out
_LOOK_SECONDS = 0.05


class Timer(Struct, eq=False):
    """A timer of the code's own, which asks here before it does what it was set for."""

    due: float  # in milliseconds of the clock of the attempt that recorded the entry it is dated by
    epoch: int  # of that attempt
    callback: Any
    args: tuple[Any, ...]
    handle: Any = None

    def is_cancelled(self) -> bool:
        is_cancelled: bool = self.handle._cancelled
        return is_cancelled

    def go_off(self) -> None:
        if not self.is_cancelled():
            self.callback(*self.args)


class Timers:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, entries: Sequence[tuple[int, Entry]], on_held: Callable[[], None]
    ) -> None:
        """`on_held` is called when a timer is held back: it may be all that the code waits for."""
        self._loop, self._all, self._on_held = loop, entries, on_held
        self._scheduled: Any = getattr(loop, "_scheduled", ())  # uvloop shows none
        self._entries: dict[int, Entry] = {}
        self._last, self._since, self._is_dating = 0, 0.0, False  # what the code has got, and when
        self.has_dated = False  # whether a timer was set since then
        self._next: Entry | None = None  # what it waits for, if that was recorded as a result
        self.held: list[Timer] = []

    def handed(self, position: int) -> None:
        """The code gets the result recorded here; the timers it sets before it is at rest are dated by it."""
        self._last, self._since, self._is_dating = position, loop_time(self._loop), True
        self.has_dated = False

    def wait_for(self, position: int) -> bool:
        """The code is at rest, and this result is next. Returns whether a timer was released, so that the code is no
        longer at rest."""
        found = self._entry(position)
        self._next = found if found is not None and found.kind == "result" else None
        self._is_dating = False
        return bool(self.held) and self._let_go([timer for timer in self.held if not self._is_early(timer)])

    @property
    def last(self) -> int:
        """The position of what the code has got last."""
        return self._last

    def path_at(self, position: int) -> str:
        """The path of what was recorded here; empty when nothing was."""
        found = self._entry(position)
        return "" if found is None else found.path

    def scope_at(self, position: int) -> str:
        """The scope of it."""
        return scope_of(self.path_at(position))

    def call_scope_at(self, position: int) -> str | None:
        """The same; None for a timer, a thread or a time-out, which wait while their scope continues."""
        found = self._entry(position)
        return None if found is None or found.op in (*WAKING, "timeout") else scope_of(found.path)

    def is_cut(self, position: int) -> bool:
        """True if the call recorded here was cancelled by the code."""
        found = self._entry(position)
        return found is not None and found.kind == "cut"

    def last_at(self) -> int | None:
        """When that was recorded, in milliseconds."""
        found = self._entry(self._last)
        return None if found is None else found.at

    def set(self, when: float, callback: Any, args: tuple[Any, ...], context: Context | None) -> asyncio.TimerHandle:
        """Set a timer of the code's own for a moment of the loop's clock, dated if it can be."""
        self.has_dated = True
        call_at = plain_call_at(self._loop)
        last = self._entry(self._last) if self._is_dating else None
        if last is None:
            return call_at(when, callback, *args, context=context)
        timer = Timer(last.at + (when - self._since) * 1000, last.epoch, callback, args)
        handle: asyncio.TimerHandle = call_at(when, self.run_out, timer, context=context)
        timer.handle = handle
        return handle

    def run_out(self, timer: Timer) -> None:
        if self._is_early(timer):
            self.held.append(timer)
            self._on_held()
        else:
            timer.callback(*timer.args)

    def let_go_first(self) -> bool:
        """Nothing else happens: the first of those that are kept back runs out."""
        return self._let_go(sorted(self.held, key=_due)[:1])

    def let_go_all(self) -> None:
        """Nothing is left that was recorded."""
        self._next, self._is_dating = None, False
        if self.held:
            self._let_go(self.held)

    def close(self) -> None:
        """The attempt is over: keep no reference to it."""
        self.let_go_all()
        self._on_held = _nothing

    def has_any(self, may_call: Callable[[Context], bool]) -> bool:
        """True if a timer that was not held back has not expired yet, and belongs to code that can make a call then."""
        return any(not handle._cancelled and may_call(handle._context) for handle in list(self._scheduled))

    def first_of(self, does: Any, may_call: Callable[[Context], bool]) -> float | None:
        """When the first such timer expires, of code that can make a call then."""
        ours = [handle for handle in list(self._scheduled) if not handle._cancelled and may_call(handle._context)]
        moments: list[float] = [handle.when() for handle in ours if _does(handle) is does]
        if any(timer.callback is does and not timer.is_cancelled() for timer in self.held):
            moments.append(loop_time(self._loop) + _LOOK_SECONDS)
        return min(moments, default=None)

    def lasted(self, position: int, is_alive: Callable[[str], bool]) -> float:
        """How many seconds passed between the last call of its scope and this entry.

        Of a scope that is not there, and for which nothing is kept back: since the code got its last result.
        """
        found, last = self._entry(position), self._entry(self._last)
        if found is None:
            return 0.0
        scope = scope_of(found.path)
        while self.held and not is_alive(scope):
            scope = scope.rpartition("/")[0]
        first = first_dated(self._all) or found
        before = first.at if last is None else last.at
        if is_alive(scope):
            ends = (e.at for p, e in self._all if p < position and e.kind != "intent" and scope_of(e.path) == scope)
            before = max(ends, default=first.at - first.took_ms)
        return max(0.0, (found.at - before) / 1000)

    # ── dates ───────────────────────────────────────────────────────────────────────────────────

    def _entry(self, position: int) -> Entry | None:
        if not self._entries:
            self._entries = dict(self._all)
        return self._entries.get(position)

    def _is_early(self, timer: Timer) -> bool:
        """True if the timer had not expired when the next result was recorded."""
        next, last = self._next, self._entry(self._last)
        if next is None or last is None or timer.epoch != next.epoch:
            return False
        # A clock that is standing still, as in tests, dates nothing.
        return timer.due > next.at + _EXACT_MS and next.at > last.at

    def _let_go(self, timers: list[Timer]) -> bool:
        self.held = [timer for timer in self.held if timer not in timers and not timer.is_cancelled()]
        for timer in sorted(timers, key=_due):
            self._loop.call_soon(timer.go_off, context=timer.handle._context)
        return bool(timers)


def _nothing() -> None:
    pass


def _due(timer: Timer) -> float:
    return timer.due


def _does(handle: Any) -> Any:
    """The callback a timer handle wraps."""
    asks = handle._args and isinstance(handle._args[0], Timer)
    return handle._args[0].callback if asks else handle._callback
