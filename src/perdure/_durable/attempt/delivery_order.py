"""Hand results to the code in the order of their positions, one at a time.

With several scopes alive, the order in which they get results can decide what the code does next: `as_completed`, a
queue, a lock. So results are handed out in journal order, live and in replay, and the next one only when the code is at
rest: everything the last result set off has run. Between two rests the code then does the same in every attempt,
because exactly one result has reached it. With a single scope there is nothing to order.

A cancellation that ends a call has its place in the order too. Waits that perdure does not record (a timer, a socket)
have none: such a scope makes its next call whenever it gets there, and the others wait for it, including their
time-outs (replay_timers.py).
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from typing import Protocol

from perdure._durable.attempt.timing import Timers, ready_calls
from perdure._model import Entry, scope_of

# After so many passes of the loop, code that never rests (it polls with sleep(0)) is not waited for.
MOST_PASSES = 1_000
# When no scope asks for a recorded result while others wait behind it, it is skipped after this much longer than it
# took to arrive.
PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.05
# After this much time without a result, a scope is let go on that waits for a sleep or a thread of its own.
_BLOCKED_SECONDS = 0.2

_WAKES = asyncio.futures._set_result_unless_cancelled  # type: ignore[attr-defined]
# Our own callbacks run in an empty context, so that they are not taken for the code's.
NOBODY = Context()


class Owner(Protocol):
    """The owner of a result."""

    def is_ours(self, context: Context) -> bool:
        """True if the code in this context belongs to the durable function itself."""
        ...

    def may_call(self, context: Context) -> bool:
        """The same, for code that can still make a call."""
        ...

    def is_alive(self, scope: str) -> bool:
        """True if the scope of this path has begun, and has not ended."""
        ...


class Waking(Protocol):
    """Timers and threads of the code's own."""

    @property
    def has_kept_back(self) -> bool:
        """True if some results wait until everything recorded has been handed out."""
        ...

    def arm_all(self) -> None: ...

    def arm_blocking(self, scope: str) -> None:
        """Arm those that this scope itself waits for."""
        ...

    def sleeps_until(self, may_call: Callable[[Context], bool]) -> float | None: ...

    def has_armed(self, may_call: Callable[[Context], bool]) -> bool:
        """True if a timer is set at the loop by code that can still make a call."""
        ...


class _Nobody:
    """Of an attempt that is over nothing is ours any more."""

    def is_ours(self, context: Context) -> bool:
        return False

    def may_call(self, context: Context) -> bool:
        return False

    def is_alive(self, scope: str) -> bool:
        return False


class _NoAlarms:
    """Most attempts set no timers of their own."""

    has_kept_back = False

    def arm_all(self) -> None:
        pass

    def arm_blocking(self, scope: str) -> None:
        pass

    def sleeps_until(self, may_call: Callable[[Context], bool]) -> float | None:
        return None

    def has_armed(self, may_call: Callable[[Context], bool]) -> bool:
        return False


_NO_ALARMS = _NoAlarms()
_NO_OWNER = _Nobody()


class Gate:
    # Most attempts never put anything into these. Sets would be looked at by every garbage collection, and dicts of
    # plain keys are not.
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        recorded: Iterable[int],
        owner: Owner,
        entries: Sequence[tuple[int, Entry]] = (),
    ) -> None:
        self._loop, self._owner = loop, owner
        self._ready = ready_calls(loop)
        self._queue = self._ready if isinstance(self._ready, deque) else None  # the loop's own, if it shows one
        self.timers = Timers(loop, entries, self.look_soon)
        self.alarms: Waking = _NO_ALARMS
        self.unset: dict[str, int] = {}  # by path: recorded timers and threads that the code has not set yet
        self._expected = deque(recorded)  # in order; each is asked for at the gate, or skipped
        self._live: dict[int, None] = {}  # of these, the ones recorded by this attempt
        self.last_recorded = self._expected[-1] if self._expected else 0
        self.loose: dict[int, None] = {}  # results without a place in the order: handed out when asked for
        self._has_new = False  # something was recorded by this attempt
        self._handed: dict[int, None] = {}
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._for_ever: dict[asyncio.Future[None], None] = {}
        self._is_looking = self._is_sure_busy = False
        self._passes = 0
        self._looking: asyncio.Handle | None = None
        self._poll: asyncio.TimerHandle | None = None
        self._quiet = self._blocked = 0.0  # how long no scope has asked; of that, without a timer of the code

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def is_waiting(self, position: int) -> bool:
        return position in self._waiting

    def expect(self, position: int) -> None:
        """Announce a live result with this position, which will be asked for at the gate."""
        self._has_new = True
        if position not in self._live:
            self._live[position] = None
            insort(self._expected, position)

    def passed(self, position: int) -> None:
        """Handed out, or never to be."""
        if position <= self.last_recorded:
            self._handed[position] = None
            self.timers.handed(position)
        else:
            self._has_new = True
            if position in self._live:
                self._handed[position] = None
        if self._waiting or self.alarms.has_kept_back or (self._has_new and self.unset):
            self.look_soon()

    def wait_for_ever(self, future: asyncio.Future[None]) -> None:
        """Register a waiter that only a cancellation can end."""
        self._for_ever[future] = None
        future.add_done_callback(self._for_ever.pop, context=NOBODY)

    async def turn(self, position: int, *, absorbs: bool = False) -> None:
        """Wait until it is this result's turn.

        `absorbs`: when it was recorded, the call was cancelled and ended all the same; so it does again.
        """
        try:
            while True:
                try:
                    await self.come(position)
                    return
                except asyncio.CancelledError:
                    if not absorbs:
                        raise
        finally:
            self.leave(position)

    def come(self, position: int) -> asyncio.Future[None]:
        """A future that is done when it is this result's turn; then, or to give up waiting, `leave`."""
        future: asyncio.Future[None] = self._loop.create_future()
        if position in self.loose:
            future.set_result(None)
            return future
        if position > self.last_recorded:
            self.expect(position)
        self._waiting[position] = future
        self.look_soon()
        return future

    def leave(self, position: int) -> None:
        if self._waiting.pop(position, None) is not None:  # else it was handed out
            self.passed(position)

    def fail(self, error: BaseException) -> None:
        """Hand out nothing more: every waiting call gets the error."""
        self.timers.let_go_all()
        for future in [*self._waiting.values(), *self._for_ever]:
            if not future.done():
                future.set_exception(error)

    def close(self) -> None:
        """The attempt is over."""
        self._owner = _NO_OWNER
        self.timers.close()
        if self._poll is not None:
            self._poll.cancel()
        # These refer back to the gate: only the garbage collector could free it.
        self._queue = self._looking = self._poll = None
        self.alarms = _NO_ALARMS

    # ── rest ────────────────────────────────────────────────────────────────────────────────────

    def is_at_rest(self) -> bool:
        """True if none of the durable function's own code is about to run."""
        ready = self._ready
        if not ready:
            return True
        self._passes += 1
        if self._passes >= MOST_PASSES:
            return True
        is_ours = self._owner.is_ours
        for handle in list(ready):  # noqa: SIM110
            if not handle._cancelled and is_ours(handle._context):
                return False
        return True

    def begin_to_rest(self) -> None:
        self._passes = 0

    def sleeps_until(self) -> float | None:
        """When the next scope that can still make a call wakes from asyncio.sleep."""
        may_call = self._owner.may_call
        moments = (self.timers.first_of(_WAKES, may_call), self.alarms.sleeps_until(may_call))
        return min((moment for moment in moments if moment is not None), default=None)

    # ── handing out ─────────────────────────────────────────────────────────────────────────────

    def look_soon(self) -> None:
        """Look whether something can be handed out, once the code is at rest."""
        if not self._is_looking:
            self._is_looking = True
            self.begin_to_rest()
            self._look_in_next_pass()

    def _look_in_next_pass(self) -> None:
        if self._queue is not None:
            if self._looking is None:
                self._looking = asyncio.Handle(self._look, (), self._loop, NOBODY)
            self._queue.append(self._looking)  # what call_soon does, without making a handle each time
        else:
            self._loop.call_soon(self._look, context=NOBODY)

    def _look(self) -> None:
        if self._is_sure_busy:
            self._is_sure_busy = False
            # The scope that got the last result has run by now, ahead of us in this very pass. If that set nothing off,
            # the code is at rest, and the next result need not wait for another pass.
            if not self._ready:
                self._is_looking = False
                self._hand_out()
            else:
                self._look_in_next_pass()
        elif not self.is_at_rest():
            self._look_in_next_pass()
        else:
            self._is_looking = False
            self._hand_out()

    def is_before_frontier(self) -> bool:
        """True if some recorded result has not been handed out."""
        self._forget_handed()
        return bool(self._expected) and self._expected[0] <= self.last_recorded

    def has_only_cancelled_calls(self) -> bool:
        """True if all that is left of the record is calls that the code has already cancelled again."""
        left = [found for found in self._expected if found <= self.last_recorded]
        return all(found in self._waiting and self.timers.is_cut(found) for found in left) and not self.timers.has_dated

    def _forget_handed(self, is_at_rest: bool = False) -> None:
        expected, handed = self._expected, self._handed
        while expected and (expected[0] in handed or (self.unset and self._was_left_out(expected[0], is_at_rest))):
            handed.pop(expected[0], None)
            self._live.pop(expected.popleft(), None)

    def _was_left_out(self, position: int, is_at_rest: bool) -> bool:
        """True if the code does not set this timer this time: its scope has already made a later call."""
        path = self.timers.path_at(position)
        if path not in self.unset:
            return False
        scope = scope_of(path)
        later = (found for found in (*self._handed, *self._waiting) if found > position)
        is_behind = any(self.timers.call_scope_at(found) == scope for found in later)
        if not is_behind and not (is_at_rest and self._is_all_unset()):
            return False
        del self.unset[path]
        return True

    def _is_all_unset(self) -> bool:
        """True if the code already makes new calls and no recorded call is left, only timers."""
        if not self._has_new:
            return False
        left = (found for found in self._expected if found <= self.last_recorded)
        return all(self.timers.call_scope_at(found) is None for found in left)

    def _hand_out(self) -> None:
        self._forget_handed(is_at_rest=True)
        expected = self._expected
        if self._poll is not None:
            self._poll.cancel()
            self._poll = None
        if not expected or expected[0] > self.last_recorded:
            self.timers.let_go_all()
            self.alarms.arm_all()
        elif self.timers.wait_for(expected[0]):
            self.look_soon()
            return
        if expected and expected[0] in self._waiting:
            self._give(expected.popleft())
        elif expected and expected[0] <= self.last_recorded and self._somebody_waits():
            self._quiet = self._blocked = 0.0
            self._poll = self._loop.call_later(_POLL_SECONDS, self._lose_patience, context=NOBODY)

    def _next_scope(self) -> str:
        """The scope that must ask for the next result; before it exists, the scope that must start it."""
        scope = self.timers.scope_at(self._expected[0])
        while not self._owner.is_alive(scope):
            scope = scope.rpartition("/")[0]
        return scope

    def _somebody_waits(self) -> bool:
        return bool(self._waiting or self.timers.held) or self.alarms.has_kept_back

    def _give(self, position: int) -> None:
        if position <= self.last_recorded:
            self.timers.handed(position)
        self._live.pop(position, None)
        future = self._waiting.pop(position)
        if not future.done():
            future.set_result(None)
            self._is_sure_busy = True  # the receiver runs before the next look, and sets something off
        self.look_soon()

    def _lose_patience(self) -> None:
        """No scope has asked for the next result. If the code does not wait for a timer of its own, continue without
        it."""
        if not self.is_before_frontier():  # it has been handed out since, and no look followed
            self.look_soon()
            return
        timers, owner = self.timers, self._owner
        self._blocked += _POLL_SECONDS
        if self._blocked >= _BLOCKED_SECONDS:
            self.alarms.arm_blocking(self._next_scope())
        waits = timers.has_any(owner.may_call) or self.alarms.has_armed(owner.may_call)
        self._quiet = 0.0 if waits else self._quiet + _POLL_SECONDS
        longest = PATIENCE_SECONDS + timers.lasted(self._expected[0], owner.is_alive)
        if self._blocked >= longest and timers.let_go_first():
            self.look_soon()
        elif self._quiet < longest:
            self._poll = self._loop.call_later(_POLL_SECONDS, self._lose_patience, context=NOBODY)
        elif self._waiting:
            self._pass_over(min(self._waiting))
        else:
            self.alarms.arm_all()

    def _pass_over(self, position: int) -> None:
        self._expected.remove(position)
        self._give(position)
