"""The effects of this process that are under way, and the time each of them has left.

`asyncio.timeout` sets a timer for each block. Here the effects of one loop share a timer, set for the earliest
deadline. When it rings, the effects past their deadline are cut off, and it is set for the next one. An effect that
ends in time leaves nothing in the loop's heap.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from weakref import WeakValueDictionary

from msgspec import Struct, field

from perdure._durable.attempt import NOBODY, Attempt, making
from perdure._durable.effects.effect_in_progress import EffectInProgress


class Limits:
    """The timer of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # The loops of asyncio go by this clock, each by a function of its own.
        self.time = time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time
        self.attempts: WeakValueDictionary[int, AtWork] = WeakValueDictionary()
        self.earliest = math.inf  # when the timer rings
        self._timer: asyncio.TimerHandle | None = None

    def set_for(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.earliest, self._timer = when, self._loop.call_at(when, self._look, context=NOBODY)

    def works(self) -> list[EffectInProgress]:
        attempts = [at_work for known in self.attempts.valuerefs() if (at_work := known()) is not None]
        return [walk for at_work in attempts for walk in at_work.walks.copy()]

    def _look(self) -> None:
        self.earliest, self._timer = math.inf, None
        now = self.time()
        works = self.works()
        for work in works:
            if work.when <= now:
                work.cut_off()
        earliest = min((work.when for work in works), default=math.inf)
        if earliest < math.inf:
            self.set_for(earliest)


class AtWork(Struct, eq=False, weakref=True):
    """The state that the effects of one attempt share."""

    limits: Limits
    boottime: Callable[[], float]
    now_ms: Callable[[], int]
    walks: set[EffectInProgress] = field(default_factory=set)  # those under way

    def __post_init__(self) -> None:
        self.limits.attempts[id(self)] = self


# Kept by the attempts that use it, and by its timer: the limits of a loop hold that loop, and must not outlive it.
_of_loop: WeakValueDictionary[asyncio.AbstractEventLoop, Limits] = WeakValueDictionary()


def at_work_of(attempt: Attempt) -> AtWork:
    """The effects of an attempt; made when the first one is called, by whichever thread."""
    found = attempt.activity.effects
    if type(found) is AtWork:
        return found
    with making:
        found = attempt.activity.effects
        if type(found) is not AtWork:
            limits = _of_loop.get(attempt.loop)
            if limits is None:
                limits = _of_loop[attempt.loop] = Limits(attempt.loop)
            clock = attempt.store.clock
            found = attempt.activity.effects = AtWork(limits, clock.boottime, clock.now_ms)
        return found


def all_under_way() -> list[EffectInProgress]:
    """The effects that run in this process now."""
    loops = [limits for known in _of_loop.valuerefs() if (limits := known()) is not None]
    return [walk for limits in loops for walk in limits.works()]
