"""One question to the keeper. An event loop or a thread waits for its answer; the reader of the link delivers it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from typing import Any, Protocol

from perdure import keeper
from perdure._ground.bridge import Call, Hop
from perdure._runtime.keeper_client import refusals

Answered = keeper.Reply | keeper.Refusal | BaseException


class Way(Protocol):
    """Sends questions and reads their answers."""

    def submit(self, ask: Ask) -> None: ...

    def submit_at_once(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> bool: ...

    def give_up(self, ask: Ask) -> None: ...


class Ask(Hop[keeper.Reply]):
    """A question on its way; await it for the answer.

    Raises:
        PerdureError: the keeper has refused, or cannot be reached.
    """

    __slots__ = ("_way", "request", "loop", "_future", "_done", "_answer")
    request: keeper.Request

    def __init__(self, way: Way, request: keeper.Request) -> None:
        self._way, self.request = way, request
        self.loop: asyncio.AbstractEventLoop | None = None  # that waits for it; else a thread does
        self._future: asyncio.Future[None] | None = None
        self._done: threading.Event | None = None
        self._answer: Answered | None = None

    def block(self) -> keeper.Reply:
        self._done = threading.Event()
        try:
            self._way.submit(self)
            self._done.wait()
        finally:
            self._way.give_up(self)
        return self._result()

    def on_loop(self) -> Generator[Any, None, keeper.Reply]:
        loop = self.loop = asyncio.get_running_loop()
        future = self._future = loop.create_future()
        try:
            if not self._way.submit_at_once(self, loop):
                yield from Call(lambda: self._way.submit(self)).on_loop()
            yield from future
        finally:
            self._way.give_up(self)
        return self._result()

    def _result(self) -> keeper.Reply:
        answer = self._answer
        if isinstance(answer, keeper.Reply):
            return answer
        if isinstance(answer, keeper.Refusal):
            raise refusals.error_of(answer, self.request)
        assert answer is not None
        raise answer

    def settle(self, answer: Answered, *, on: asyncio.AbstractEventLoop | None = None) -> None:
        """Deliver the answer; `on` is the loop that calls this, if a loop does."""
        self._answer = answer
        if self._done is not None:
            self._done.set()
        elif self.loop is on:
            self._ring()
        elif self.loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                self.loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
