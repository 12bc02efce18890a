"""Follow one task exactly: each event by its number, each call by its place in the journal.

Where a client is, is told by numbers that live in the store, so it goes on with any server, after any restart, without
a message left out or sent twice. All clients that follow a task share one reader, which stands at the end; a client
that is further back reads for itself until it has caught up.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from perdure._tasks import Task
from perdure.errors import NotFound
from perdure.server.http import Caller
from perdure.server.live.messages import Message
from perdure.server.live.sources import last_event
from perdure.server.shapes.live import calls_for
from perdure.server.shapes.tasks import event_for

if TYPE_CHECKING:
    from perdure._app import Perdure

_EVENTS, _ENTRIES = 200, 500  # of one batch
_FORM = re.compile(r"e([0-9]{1,15})\.j([0-9]{1,9})\.([0-9]{1,15})")


class Place(NamedTuple):
    """A client's position: the number of the last event, and the line and position of the last journal entry."""

    event: int = 0
    line: int = 1
    position: int = 0

    def __str__(self) -> str:
        return f"e{self.event}.j{self.line}.{self.position}"

    @classmethod
    def read(cls, text: str) -> Place | None:
        found = _FORM.fullmatch(text)
        return cls(int(found[1]), max(1, int(found[2])), int(found[3])) if found else None


class Batch(NamedTuple):
    """The messages after a position."""

    before: Place
    after: Place
    items: Sequence[tuple[Place, Message]]


class TaskWatch:
    """One task that is followed."""

    def __init__(self, app: Perdure, task: Task) -> None:
        self._app, self._task = app, task
        self.listeners = 0
        self.is_gone = False
        self._end: Place | None = None
        self._last: Batch | None = None
        self._changed = asyncio.Event()

    async def look(self) -> None:
        """See whether there is something new, and wake those who wait for it."""
        try:
            if self._end is None:
                self._end = await self.end()
            batch = await self._read(self._end)
        except NotFound:
            self.is_gone = True
            self.wake()
            return
        if batch.after != batch.before:
            self._end, self._last = batch.after, batch
            self.wake()

    def wake(self) -> None:
        """Have those who wait look again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def end(self) -> Place:
        """The place after everything that there is now."""
        event = await last_event(self._app.tasks, self._task)
        return Place(event, *await self._app.journal.end_of(self._task))

    async def after(self, place: Place, seconds: float) -> Batch | None:
        """The messages after a position. Without any, wait for a change, at most this long, and return None.

        Raises:
            NotFound: the task is deleted.
        """
        changed, last = self._changed, self._last
        if self.is_gone:
            raise NotFound("task", self._task.id, "this store")
        if last is not None and last.before == place:
            return last
        if place != self._end:
            batch = await self._read(place)
            if batch.after != place:
                return batch
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()
        return None

    async def _read(self, place: Place) -> Batch:
        """The journal is read after the events, and told before them: who sees an event has seen what led to it."""
        events = await self._app.tasks.events(self._task, after=place.event, limit=_EVENTS)
        news = await self._app.journal.since(self._task, place.line, place.position, limit=_ENTRIES)
        at = Place(place.event, news.line, news.upto)
        items = [(at, self._entries(news))] if news.calls else []
        if not news.more:
            for event in events:
                at = at._replace(event=event.number)
                items.append((at, self._event(event)))
        return Batch(place, at, items)

    def _entries(self, news: Any) -> Message:
        def make(caller: Caller) -> Any:
            return {"line": news.line, "upto": news.upto, "calls": calls_for(caller, news.calls)}

        return Message("entries", ("entries", news.line, news.upto), make)

    def _event(self, event: Any) -> Message:
        return Message("event", ("event", event.number), lambda caller: event_for(caller, event))
