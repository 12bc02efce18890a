"""Notice requests that hold up the event loop, and so all other requests.

Between two awaits a request has the loop for itself. `watched` measures each such stretch and names the route of a
long one; the pulse notices what else holds the loop, without a name.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

log = logging.getLogger("perdure.server")

T = TypeVar("T")
TOO_LONG = 0.05  # seconds
_PULSE = 0.1  # seconds


class HeldLoop:
    """The longest times that the loop of one server was held."""

    def __init__(self) -> None:
        self.longest, self.route = 0.0, ""  # since the server began
        self._since_look = 0.0

    def note(self, seconds: float, route: str = "") -> None:
        self._since_look = max(self._since_look, seconds)
        if seconds > self.longest or (route and not self.route and seconds > TOO_LONG):
            self.longest, self.route = max(seconds, self.longest), route or self.route
        if route and seconds > TOO_LONG:
            told = {"route": route, "ms": round(seconds * 1000, 1)}
            log.warning("%s held up all other requests for %.0f ms", route, seconds * 1000, extra=told)

    def take(self) -> float:
        """The longest since the last call."""
        found, self._since_look = self._since_look, 0.0
        return found

    def watched(self, work: Awaitable[T], route: Callable[[], str]) -> Awaitable[T]:
        """The same work; a stretch without an await that takes too long is noted."""
        return _Watched(work, route, self)

    async def feel_pulse(self) -> None:
        """Notice how long the event loop is held up by anything. Runs until it is cancelled."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(_PULSE)
            self.note(time.monotonic() - began - _PULSE)


class _Watched(Awaitable[T]):
    def __init__(self, work: Awaitable[T], route: Callable[[], str], held: HeldLoop) -> None:
        self._work, self._route, self._held = work, route, held

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        step, value = steps.send, None
        while True:
            began = time.perf_counter()
            try:
                awaited = step(value)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                spent = time.perf_counter() - began
                if spent > TOO_LONG:
                    self._held.note(spent, self._route())
            try:
                value, step = (yield awaited), steps.send
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                value, step = error, steps.throw
