"""How long a body may run, for bodies of which nearly none runs so long.

`asyncio.timeout` sets a timer for each block. Here the blocks of one loop share a timer, which is set for the earliest
moment; when it goes off, those whose time is over are cancelled, and it is set for the next. Whoever ends in time
leaves nothing in the loop's heap.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from perdure._durable.gate import NOBODY
from perdure._durable.run import Run


class Limit:
    """`with limits.limit(task, seconds):` raises TimeoutError when it takes longer, as `asyncio.timeout` does."""

    __slots__ = ("_before", "_limits", "_task", "is_over", "when")

    def __init__(self, limits: Limits, task: asyncio.Task[Any], when: float) -> None:
        self._limits, self._task, self.when = limits, task, when
        self._before = task.cancelling()
        self.is_over = False

    def __enter__(self) -> None:
        self._limits.add(self)

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
        self._loop = loop
        self.live: set[Limit] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._when = 0.0

    def limit(self, task: asyncio.Task[Any], seconds: float) -> Limit:
        return Limit(self, task, self._loop.time() + seconds)

    def add(self, limit: Limit) -> None:
        self.live.add(limit)
        if self._timer is None or limit.when < self._when:
            self._set(limit.when)

    def _set(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._when, self._timer = when, self._loop.call_at(when, self._look, context=NOBODY)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for limit in [limit for limit in self.live if limit.when <= now]:
            self.live.discard(limit)
            limit.end()
        if self.live:
            self._set(min(limit.when for limit in self.live))


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Limits] = WeakKeyDictionary()


def limits_of(run: Run) -> Limits:
    """For `run.part`."""
    found = _of_loop.get(run.loop)
    if found is None:
        found = _of_loop[run.loop] = Limits(run.loop)
    return found
