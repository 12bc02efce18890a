"""The shared parts of one server's live streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from perdure._ground.clock import Clock
from perdure.server.live.feed import Feed, Feeds
from perdure.server.live.rooms import Rooms
from perdure.server.settings import Settings
from perdure.server.telemetry import Telemetry

if TYPE_CHECKING:
    from perdure._app import Perdure


class Pace(NamedTuple):
    """Seconds between the duties of an open stream."""

    beat: float = 15.0  # a comment, so that the line is not taken for dead
    check: float = 30.0  # a look whether the caller may still listen


class Live:
    """The places for streams, the feeds, and the end of both."""

    def __init__(self, settings: Settings, clock: Clock, stopping: asyncio.Event, telemetry: Telemetry) -> None:
        self.rooms = Rooms(settings.streams_per_key, settings.streams, telemetry.note_refused_stream)
        self.pace = Pace()
        self._feeds, self._stopping = Feeds(clock, telemetry), stopping
        self._waker: asyncio.Task[None] | None = None

    def feed_of(self, namespace: str, app: Perdure) -> Feed:
        if self._waker is None:
            self._waker = asyncio.create_task(self._wake_at_the_end())
        return self._feeds.of(namespace, app)

    async def _wake_at_the_end(self) -> None:
        await self._stopping.wait()
        self._feeds.wake()

    async def close(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
        await self._feeds.close()
