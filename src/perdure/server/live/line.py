"""One open stream: what it has to do beside its messages, and how it ends.

Every 15 s it sends a comment with the server's time. Every 30 s it looks whether its caller may still listen. It says
`bye` when the server leaves, after which a client comes back, and `end` when the caller may not listen any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from perdure._ground.clock import moment
from perdure.server.http import Ask, to_json
from perdure.server.live.live import Live
from perdure.server.live.messages import comment, sse

HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
MEDIA = "text/event-stream"
RETRY = b"retry: 2000\n\n"


class OpenLine:
    """The duties of one stream."""

    def __init__(self, ask: Ask[Any, Any]) -> None:
        self._ask, self._server, self._loop = ask, ask.server, asyncio.get_running_loop()
        self._pace = ask.server.part(Live).pace
        self._beat, self._check = self._loop.time() + self._pace.beat, self._loop.time() + self._pace.check
        self.caller = ask.caller
        self.is_over = False

    @property
    def seconds(self) -> float:
        """The time it may wait for messages before the next duty."""
        return max(0.0, min(self._beat, self._check) - self._loop.time())

    def hello(self, about: dict[str, Any], id: str) -> bytes:
        return RETRY + sse("hello", to_json({**about, "at": moment(self._server.clock.now_ms())}), id)

    async def duties(self) -> bytes:
        """The text to send now beside messages; it can be the last one."""
        now = self._loop.time()
        if self._server.stopping.is_set():
            return self._last("bye", {"why": "the server leaves; come back"})
        if now >= self._check:
            self._check = now + self._pace.check
            caller = await self._ask.renew() if self._ask.renew is not None else self._ask.caller
            if caller is None:
                return self._last("end", {"why": "this credential may not listen any more"})
            if (caller.namespace, caller.scopes) != (self.caller.namespace, self.caller.scopes):
                return self._last("bye", {"why": "the credential gives something else now; come back"})
        if now >= self._beat:
            self._beat = now + self._pace.beat
            return comment(moment(self._server.clock.now_ms()))
        return b""

    def _last(self, event: str, value: dict[str, Any]) -> bytes:
        self.is_over = True
        return sse(event, to_json(value))


class Lasting:
    """The pieces of an answer, with what is held while they are sent; also when none ever is."""

    def __init__(self, pieces: AsyncIterator[bytes], held: AsyncExitStack) -> None:
        self._pieces, self._held = pieces, held

    def __aiter__(self) -> Lasting:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        try:
            if (close := getattr(self._pieces, "aclose", None)) is not None:
                await close()
        finally:
            await self._held.aclose()
