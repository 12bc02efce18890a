"""Hand results to the code in the order of their positions, one at a time.

With several scopes alive, who gets a result first can decide what the code does next: `as_completed`, a
queue, a lock. So results go out in journal order, live as in replay, and the next one only when the loop
has come to rest: all that the last one set off has then run. With one scope there is nothing to order.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from typing import Any

# Without a look into the loop (uvloop): this many passes in a row count as rest.
_PASSES = 12
# A result that nobody comes for, while others wait behind it, is passed over after this long.
_PATIENCE_SECONDS = 5.0


class Gate:
    def __init__(self, loop: asyncio.AbstractEventLoop, recorded: Iterable[int]) -> None:
        self._loop = loop
        self._ready: Any = getattr(loop, "_ready", None)
        self._expected = list(recorded)
        heapq.heapify(self._expected)
        self._handed: set[int] = set()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._is_checking = False
        self._passes = 0
        self._stuck: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def expect(self, position: int) -> None:
        """A live result has this position and will come to the gate."""
        heapq.heappush(self._expected, position)

    def passed(self, position: int) -> None:
        """Handed out, or never to be."""
        self._handed.add(position)
        if self._waiting:
            self._look_soon()

    async def turn(self, position: int) -> None:
        """Wait until it is this result's turn."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[position] = future
        self._look_soon()
        try:
            await future
        finally:
            self._waiting.pop(position, None)
            self.passed(position)

    def _look_soon(self) -> None:
        if not self._is_checking:
            self._is_checking = True
            self._passes = 0
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        if self.is_loop_busy():
            self._loop.call_soon(self._look)
            return
        self._is_checking = False
        self._hand_out()

    def is_loop_busy(self) -> bool:
        if self._ready is not None:
            return len(self._ready) > 0
        self._passes += 1
        return self._passes < _PASSES

    def _hand_out(self) -> None:
        expected, handed = self._expected, self._handed
        while expected and expected[0] in handed:
            handed.discard(heapq.heappop(expected))
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        if not self._waiting:
            return
        lowest = min(self._waiting)
        if not expected or lowest <= expected[0]:
            self._give(lowest)
        else:
            self._stuck = self._loop.call_later(_PATIENCE_SECONDS, self._pass_over)

    def _give(self, position: int) -> None:
        future = self._waiting[position]
        if not future.done():
            future.set_result(None)

    def _pass_over(self) -> None:
        if self._waiting:
            self._give(min(self._waiting))
