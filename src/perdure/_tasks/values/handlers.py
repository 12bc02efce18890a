"""Handlers of task events, and how many events each one has been given.

A handler is known by its name. Its position in each task's events is stored, so it continues after a restart: each
event at least once, a task's events in order. One worker at a time delivers; its record says which. Everything that
takes events has this shape, including outgoing webhooks.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from perdure._model import EVENT_NAMES, REASONS, Event
from perdure._store import EventRow, Store
from perdure._tasks import records
from perdure._tasks.values.named_values import Shelf
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged

EVERY = "*"


class Handler(Struct, frozen=True):
    """A handler of events of one kind (`*`: of all), and of pauses for one reason, if one is given."""

    name: str
    event: str
    reason: str | None
    tell: Callable[[Event], Awaitable[None] | None]

    def wants(self, event: Event) -> bool:
        if self.event not in (EVERY, event.kind):
            return False
        return self.reason is None or (isinstance(event.data, Mapping) and event.data.get("reason") == self.reason)


class Handlers:
    """The handlers of one app, and the workers of this process that tell them."""

    def __init__(self) -> None:
        self._all: list[Handler] = []
        self._served_by: list[Callable[[Handler], None]] = []

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, handler: Handler) -> None:
        """Have the workers tell this handler too.

        Raises:
            InvalidInput: another handler has its name.
        """
        if any(other.name == handler.name for other in self._all):
            raise InvalidInput(f"there is a handler {handler.name!r} already", do="give this one another name=")
        self._all.append(handler)
        for serve in self._served_by:
            serve(handler)

    @contextmanager
    def served_by(self, serve: Callable[[Handler], None]) -> Iterator[None]:
        """Have `serve` called with each handler that is added while the block lasts."""
        self._served_by.append(serve)
        try:
            yield
        finally:
            self._served_by.remove(serve)


class HandlerRecord(Struct, frozen=True, kw_only=True):
    """A handler as the store knows it."""

    event: str
    reason: str | None
    since: int  # events before this moment are not told
    worker: str | None = None  # who does the telling
    trouble: str = ""  # what the newest try ended with, while it is being tried again


class Undelivered(Struct, frozen=True):
    """A task with events that a handler has not had."""

    uid: str
    id: str
    had: int


def make_handler(function: Callable[[Event], Any], event: str, reason: str | None, name: str) -> Handler:
    """Raises:
    InvalidInput: no task ever tells such an event, or no pause has this reason.
    """
    if not event:
        raise InvalidInput("a handler needs the name of an event", do='"paused", "failed", … or "*" for all')
    if event != EVERY and event not in EVENT_NAMES:
        close = difflib.get_close_matches(event, EVENT_NAMES, n=1, cutoff=0.6)
        do = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(EVENT_NAMES)}, or '*' for all"
        raise InvalidInput(f"unknown event {event!r}", do=do)
    if reason is not None and reason not in REASONS:
        raise InvalidInput(f"{reason!r} is not a reason to pause", do=f"choose from {', '.join(REASONS)}")
    if name.startswith("~"):
        raise InvalidInput(f"the name of a handler cannot begin with ~: {name!r}", do="choose another name=")
    called = name or f"{getattr(function, '__qualname__', type(function).__qualname__)}"
    return Handler(called.replace("<locals>.", ""), event, reason, function)


def handlers_of(store: Store) -> Shelf[HandlerRecord]:
    return Shelf(store, "handler", HandlerRecord)


async def undelivered(store: Store, handler: str, *, since: int, ended_since: int, limit: int) -> Sequence[Undelivered]:
    """Tasks that have told something a handler has not had: those that go on, and those that ended since a moment."""
    asked = {"namespace": store.namespace, "handler": handler, "since": since, "ended_since": ended_since}
    rows = await store.query("read_undelivered", **asked, limit=limit)
    return [Undelivered(uid, id, had) for uid, id, _, had in rows]


async def events_after(
    store: Store, task: Undelivered, limit: int = 1000, *, has_to_be_whole: bool = True
) -> Sequence[Event]:
    """The events a handler has not had. Unless whole events are required, one with unreadable data has no data."""
    events = []
    for row in await store.rows(EventRow, "read_events", uid=task.uid, after=task.had, limit=limit):
        try:
            events.append(records.event(store, task.id, task.uid, row))
        except (KeyMissing, RecordDamaged):
            if has_to_be_whole:
                raise
            events.append(records.event_without_data(task.id, row))
    return events


async def has_had(store: Store, handler: str, task: Undelivered, number: int) -> None:
    """The handler has had the task's events up to this one; durable when this returns."""
    params = {"handler": handler, "delivered": number}
    await store.verb("deliver", task.uid, params, key=task.id)
