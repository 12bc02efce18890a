"""How long a body may run, for bodies of which nearly none runs so long.

`asyncio.timeout` sets a timer for each block. Here the blocks of one loop share a timer, which is set for the earliest
moment; when it goes off, those whose time is over are cancelled, and it is set for the next. Whoever ends in time
leaves nothing in the loop's heap.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from perdure._durable.gate import NOBODY
from perdure._durable.run import Run


class Limit(Struct, eq=False):
    """`with limits.limit(task, seconds):` raises TimeoutError when it takes longer, as `asyncio.timeout` does.

    Its time begins when it is made.
    """

    _limits: Limits
    _task: asyncio.Task[Any]
    _before: int  # how often the task had been cancelled when it began
    when: float
    is_over: bool = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._limits.live.discard(self)
        # Ours is taken back; if the code was cancelled besides, that is its own and goes on.
        if self.is_over and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        self.is_over = True
        self._task.cancel()


class Limits:
    """All limits of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self.time = loop, loop.time
        self.live: set[Limit] = set()
        self.earliest = math.inf  # when the timer goes off
        self._timer: asyncio.TimerHandle | None = None

    def limit(self, task: asyncio.Task[Any], seconds: float) -> Limit:
        when = self.time() + seconds
        limit = Limit(self, task, task.cancelling(), when)
        self.live.add(limit)
        if when < self.earliest:
            self._set_for(when)
        return limit

    def _set_for(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.earliest, self._timer = when, self._loop.call_at(when, self._look, context=NOBODY)

    def _look(self) -> None:
        self.earliest, self._timer = math.inf, None
        now = self.time()
        for limit in [limit for limit in self.live if limit.when <= now]:
            self.live.discard(limit)
            limit.end()
        if self.live:
            self._set_for(min(limit.when for limit in self.live))


# Kept by the attempts that use it, and by its timer: the limits of a loop hold that loop, and must not outlive it.
_of_loop: WeakValueDictionary[asyncio.AbstractEventLoop, Limits] = WeakValueDictionary()


def limits_of(run: Run) -> Limits:
    """For `run.part`."""
    found = _of_loop.get(run.loop)
    if found is None:
        found = _of_loop[run.loop] = Limits(run.loop)
    return found
