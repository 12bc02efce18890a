"""The changes in a namespace, for all streams of a server that follow it.

One feed reads the store for all its listeners, so that a thousand of them cost as much reading as one. The store's bell
wakes it, at most ten times a second; without a ring it looks every second. Each message has a number; the last 2,000
are kept, so that a client whose line broke goes on where it was. A feed stays a minute after its last listener.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from perdure._ground.clock import Clock
from perdure._tasks import Task, store_of
from perdure.errors import PerdureError
from perdure.server.http import Caller
from perdure.server.live.messages import Buffer, Message
from perdure.server.live.sources import (
    CountChanges,
    InboxChanges,
    JournalEntries,
    News,
    Source,
    TaskChanges,
    TaskEvents,
    UnitChanges,
    WorkerChanges,
)
from perdure.server.live.task_watch import TaskWatch
from perdure.server.telemetry import Figures, Telemetry

if TYPE_CHECKING:
    from perdure._app import Perdure

log = logging.getLogger("perdure.server")

_KEPT = 2000  # messages, for clients that come back
_LEAST_GAP = 0.1  # seconds between two looks
_REST = 3.0  # times as long as a look took, before the next one
_LONGEST_GAP, _HELD_GAP = 1.0, 0.25
_STAYS_SECONDS = 60.0
_OF_A_TASK: Mapping[str, Callable[[Perdure, Task], Source]] = {
    "task": TaskEvents,
    "journal": JournalEntries,
    "units": UnitChanges,
}


class Feed:
    """The changes of one namespace."""

    def __init__(self, app: Perdure, clock: Clock, figures: Figures) -> None:
        self.app, self.id = app, secrets.token_hex(6)
        self._changes = TaskChanges(app, clock, self._audiences, figures)
        self._sources: dict[str, Source] = {"tasks": self._changes}
        self._due: dict[str, float] = {}
        self._listeners: dict[str, set[Buffer]] = {}
        self._watches: dict[str, TaskWatch] = {}
        self._number = 0
        self._kept: deque[tuple[int, tuple[str, ...], Message | None]] = deque(maxlen=_KEPT)
        self._rung = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._has_looked = asyncio.Event()
        self._opening = asyncio.Lock()

    # ── listeners ───────────────────────────────────────────────────────────────────────────────

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners or self._watches)

    def _audiences(self) -> set[bool]:
        """Whether there are listeners with `data:read`, and whether there are any without."""
        return {buffer.caller.reads_data for buffers in self._listeners.values() for buffer in buffers}

    @property
    def is_over(self) -> bool:
        """True if it has stopped looking, so that a client that comes now needs another one."""
        return self._work is not None and self._work.done()

    @asynccontextmanager
    async def listening(
        self, topics: Mapping[str, Task | None], *, after: str | None, caller: Caller
    ) -> AsyncIterator[Buffer]:
        """A buffer that gets what these topics tell: a topic of one task comes with that task. `after` is the id of the
        last message that the client has had; if it is still known, the buffer begins with what came since."""
        buffer = Buffer(caller)
        self._join(buffer, topics, after)
        try:
            await self._begin()
            for topic, task in topics.items():
                await self._open(topic, task)
            yield buffer
        finally:
            for topic in topics:
                self._listeners[topic].discard(buffer)
                if not self._listeners[topic]:
                    del self._listeners[topic]
                    if topic != "tasks":
                        self._sources.pop(topic, None)

    def _join(self, buffer: Buffer, topics: Collection[str], after: str | None) -> None:
        """Without a pause in between: what is told from here on is in the buffer, and what was told before is not."""
        buffer.begins_at = self._spell(self._number)
        missed = self._since(after, topics) if after is not None else None
        if missed is not None:
            buffer.begins_at, buffer.is_resumed = after or "", True
            for id, message in missed:
                buffer.put(id, message)
        elif after is not None:
            buffer.reset("gap" if after.startswith(f"{self.id}.") else "restart")
        for topic in topics:
            self._listeners.setdefault(topic, set()).add(buffer)

    async def _open(self, topic: str, task: Task | None) -> None:
        """Have the topic's source looked at; when this returns, it has noted how things stand."""
        async with self._opening:
            if topic in self._sources or (source := self._source(topic, task)) is None:
                return
            await source.look(asyncio.get_running_loop().time())
            if topic in self._listeners:
                self._sources[topic] = source

    def _source(self, topic: str, task: Task | None) -> Source | None:
        if task is not None:
            return _OF_A_TASK[topic.partition(":")[0]](self.app, task)
        if topic == "counts":
            return CountChanges(self.app, self._changes)
        if topic == "inbox":
            return InboxChanges(self.app, self._changes)
        return WorkerChanges(self.app) if topic == "operate" else None

    async def current(self, topics: Collection[str]) -> list[Message]:
        """The first messages for a new listener."""
        found: list[Message] = []
        for topic in topics:
            if (source := self._sources.get(topic)) is not None:
                found += await source.current()
        return found

    def _since(self, last_id: str, topics: Collection[str]) -> list[tuple[str, Message]] | None:
        """The messages of these topics since a given one; None when it is no longer stored, or belongs to another
        feed."""
        feed, _, text = last_id.partition(".")
        if feed != self.id or not (text.isascii() and text.isdecimal() and len(text) <= 15):
            return None
        number, oldest = int(text), self._number - len(self._kept)
        if not oldest <= number <= self._number:
            return None
        found: dict[object, tuple[str, Message]] = {}
        for one, of, message in self._kept:
            if one > number and any(topic in topics for topic in of):
                if message is None:
                    return None
                found.pop(message.about, None)
                found[message.about] = (self._spell(one), message)
        return list(found.values())

    def _spell(self, number: int) -> str:
        return f"{self.id}.{number}"

    @asynccontextmanager
    async def watching(self, task: Task) -> AsyncIterator[TaskWatch]:
        """Follow one task exactly, together with all others who do."""
        watch = self._watches.get(task.uid)
        if watch is None:
            watch = self._watches[task.uid] = TaskWatch(self.app, task)
        watch.listeners += 1
        try:
            await self._begin()
            yield watch
        finally:
            watch.listeners -= 1
            if not watch.listeners and self._watches.get(task.uid) is watch:
                del self._watches[task.uid]

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        """Look from now on; returns after the first look, so that all later changes are told."""
        if self._work is None:
            self._work = asyncio.create_task(self._run())
        looked = asyncio.ensure_future(self._has_looked.wait())
        try:
            await asyncio.wait({looked, self._work}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            looked.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()

        def ring(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._rung.set)

        left_at = loop.time()
        with store_of(self.app.tasks).bell.subscribed(ring):
            while True:
                began = loop.time()
                self._rung.clear()
                await self._look_once(began)
                self._has_looked.set()
                took = loop.time() - began
                await asyncio.sleep(max(_LEAST_GAP, _REST * took) if self.has_listeners else _LONGEST_GAP)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._rung.wait(), self._gap())
                if self.has_listeners:
                    left_at = loop.time()
                elif loop.time() - left_at > _STAYS_SECONDS:
                    return

    def _gap(self) -> float:
        is_watching = self._watches or len(self._sources) > 2
        return _HELD_GAP - _LEAST_GAP if is_watching or self._changes.is_holding else _LONGEST_GAP

    async def _look_once(self, now: float) -> None:
        for topic, source in list(self._sources.items()):
            if now < self._due.get(topic, 0.0):
                continue
            self._due[topic] = now + source.every
            await self._attempt(topic.partition(":")[0], self._look_at(source, now))
        self._changes.forget()
        self._due = {topic: due for topic, due in self._due.items() if topic in self._sources}
        for watch in list(self._watches.values()):
            await self._attempt("a task", watch.look())

    async def _look_at(self, source: Source, now: float) -> None:
        self._publish(await source.look(now))

    async def _attempt(self, what: str, look: Awaitable[None]) -> None:
        """A look that fails is made again; it ends neither the feed nor the looks of others."""
        try:
            await look
        except PerdureError as error:
            log.warning("a stream could not look at %s: %s", what, error.what)
        except Exception:
            log.exception("a stream could not look at %s", what)

    def _publish(self, news: Sequence[News]) -> None:
        for topics, message in news:
            self._number += 1
            self._kept.append((self._number, topics, message))
            id = self._spell(self._number)
            for topic in topics:
                if topic.startswith("progress:") and (watch := self._watches.get(topic.removeprefix("progress:"))):
                    watch.wake()
            for buffer in {buffer for topic in topics for buffer in self._listeners.get(topic, ())}:
                if message is None:
                    buffer.reset("gap")
                else:
                    buffer.put(id, message)

    def wake(self) -> None:
        """Have every listener look whether it has to end."""
        for buffers in self._listeners.values():
            for buffer in buffers:
                buffer.woken.set()
        for watch in self._watches.values():
            watch.wake()

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait({self._work})


class Feeds:
    """The feeds of one server, by namespace."""

    def __init__(self, clock: Clock, telemetry: Telemetry) -> None:
        self._clock, self._telemetry = clock, telemetry
        self._feeds: dict[str, Feed] = {}

    def of(self, namespace: str, app: Perdure) -> Feed:
        found = self._feeds.get(namespace)
        if found is None or found.is_over:
            found = self._feeds[namespace] = Feed(app, self._clock, self._telemetry.of(namespace))
            for name in [name for name, feed in self._feeds.items() if feed.is_over and name != namespace]:
                del self._feeds[name]
        return found

    def wake(self) -> None:
        for feed in self._feeds.values():
            feed.wake()

    async def close(self) -> None:
        for feed in self._feeds.values():
            await feed.close()
        self._feeds.clear()
