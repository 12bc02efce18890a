"""What a feed looks at: changed tasks, counts, the events and the journal of one task, units, workers.

A source is asked for news now and then, and answers with messages and the topics they belong to. It reads the library's
doors and holds only what it needs to tell new from old.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import structs

from perdure._ground.clock import Clock, moment, to_ms
from perdure._model import Counts, TaskSummary
from perdure._tasks import Task
from perdure.errors import NotFound
from perdure.server.live.messages import Message
from perdure.server.nouns.task_list import summary_for
from perdure.server.requests import Caller
from perdure.server.shapes.live import calls_for, unit_for
from perdure.server.shapes.tasks import event_for

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._runtime import UnitRecord

# A change can be committed after one with a later moment: each look begins this much before the last one.
_OVERLAP_MS = 2000
_PAGE, _MOST_PAGES = 1000, 5
_PROGRESS_SECONDS = 0.25  # between two messages about one task's progress
_COUNT_SECONDS = 1.0
_WATCH_SECONDS = 0.25
_SLOW_SECONDS = 2.0
_MOST_EVENTS = 200
_MOST_UNITS = 200


class News(NamedTuple):
    """A message, and the topics whose listeners get it. Without a message, they have to read their pages again."""

    topics: tuple[str, ...]
    message: Message | None


class Source(Protocol):
    """Something that is looked at while a topic has listeners."""

    every: float  # seconds between two looks, at least

    async def look(self, now: float) -> Sequence[News]:
        """What is new since the look before; the first one notes how things stand. `now` is the loop's time."""

    async def current(self) -> Sequence[Message]:
        """What a new listener is told at once."""


class TaskChanges:
    """The tasks of a namespace that have changed."""

    every = 0.0

    def __init__(self, app: Perdure, clock: Clock) -> None:
        self._tasks, self._clock = app.tasks, clock
        self._mark = clock.now_ms()
        self._seen: dict[str, TaskSummary] = {}
        self._gone: frozenset[str] = frozenset()
        self._told: dict[str, float] = {}  # when progress was last told
        self.is_holding = False  # something was held back, and has to be told soon
        self.moves = 0  # how often something was new

    async def look(self, now: float) -> Sequence[News]:
        read = await self._read()
        if read is None:
            return [News(("tasks", "task"), None)]
        items, gone = read
        self.is_holding = False
        news = [one for item in items for one in self._news(item, now)]
        news += [_gone(uid) for uid in gone if uid not in self._gone]
        self._told = {uid: at for uid, at in self._told.items() if uid in self._seen}
        self._gone = frozenset(gone)
        self.moves += bool(news)
        return news

    async def current(self) -> Sequence[Message]:
        return ()

    async def _read(self) -> tuple[list[TaskSummary], list[str]] | None:
        """Everything since a little before the last look; None if that is too much."""
        now = self._clock.now_ms()
        mark = self._mark
        after: Any = moment(mark - _OVERLAP_MS)
        items: list[TaskSummary] = []
        gone: list[str] = []
        for _ in range(_MOST_PAGES):
            found = await self._tasks.changes(after, _PAGE)
            items += found.items
            gone += found.gone
            after = found.watermark
            if not found.more:
                # A writer whose clock is ahead must not hide the changes of the others.
                self._mark = max(mark, min(int(str(after).partition(":")[0]), now))
                return items, gone
        self._mark, self._seen = now, {}
        return None

    def _news(self, item: TaskSummary, now: float) -> list[News]:
        before = self._seen.get(item.uid)
        if before == item:
            return []
        is_progress = before is not None and _without_progress(before) == _without_progress(item)
        if is_progress and now - self._told.get(item.uid, 0.0) < _PROGRESS_SECONDS:
            self.is_holding = True
            return []
        self._seen[item.uid] = item
        news = [News(("tasks", f"task:{item.uid}"), _task(item))]
        if before is not None and before.progress != item.progress:
            self._told[item.uid] = now
            news.append(News((f"task:{item.uid}", f"progress:{item.uid}"), _progress(item)))
        return news

    def forget(self) -> None:
        """Drop what can no longer come again."""
        least = self._mark - 2 * _OVERLAP_MS
        self._seen = {uid: item for uid, item in self._seen.items() if to_ms(item.updated_at) >= least}


def _without_progress(item: TaskSummary) -> TaskSummary:
    return structs.replace(item, progress=None, updated_at=item.created_at)


def _task(item: TaskSummary) -> Message:
    return Message("task", ("task", item.uid), lambda caller: {"topic": "tasks", "task": summary_for(caller, item)})


def _progress(item: TaskSummary) -> Message:
    def make(caller: Caller) -> Any:
        return {"topic": "task", "uid": item.uid, "progress": summary_for(caller, item).progress}

    return Message("progress", ("progress", item.uid), make)


def _gone(uid: str) -> News:
    topics = ("tasks", f"task:{uid}")
    return News(topics, Message("gone", ("task", uid), lambda _: {"topic": "tasks", "uid": uid}))


class CountChanges:
    """How many tasks there are, when that changes."""

    every = _COUNT_SECONDS

    def __init__(self, app: Perdure, changes: TaskChanges) -> None:
        self._tasks, self._changes = app.tasks, changes
        self._moves = -1
        self._counts: Counts | None = None

    async def look(self, now: float) -> Sequence[News]:
        if self._moves == self._changes.moves:
            return []
        self._moves, before = self._changes.moves, self._counts
        self._counts = await self._tasks.counts()
        return [News(("counts",), _counts(self._counts))] if self._counts != before else []

    async def current(self) -> Sequence[Message]:
        self._counts = await self._tasks.counts()
        return [_counts(self._counts)]


def _counts(counts: Counts) -> Message:
    return Message("counts", "counts", lambda _: {"topic": "counts", "counts": counts})


class TaskEvents:
    """What happens to one task."""

    every = _WATCH_SECONDS

    def __init__(self, app: Perdure, task: Task) -> None:
        self._tasks, self._task, self._topic = app.tasks, task, f"task:{task.uid}"
        self._number: int | None = None

    async def look(self, now: float) -> Sequence[News]:
        if self._number is None:
            self._number = await last_event(self._tasks, self._task)
            return []
        try:
            events = await self._tasks.events(self._task, after=self._number, limit=_MOST_EVENTS)
        except NotFound:
            return []
        if events:
            self._number = events[-1].number
        uid = self._task.uid

        def message(event: Any) -> Message:
            def make(caller: Caller) -> Any:
                return {"topic": "task", "uid": uid, "event": event_for(caller, event)}

            return Message("event", ("event", uid, event.number), make)

        return [News((self._topic,), message(event)) for event in events]

    async def current(self) -> Sequence[Message]:
        return ()


async def last_event(tasks: Any, task: Task) -> int:
    """The number of a task's newest event."""
    after = 0
    while events := await tasks.events(task, after=after, limit=1000):
        after = events[-1].number
        if len(events) < 1000:
            break
    return after


class JournalEntries:
    """Calls of one durable function as they are recorded."""

    every = _WATCH_SECONDS

    def __init__(self, app: Perdure, task: Task) -> None:
        self._journal, self._task, self._topic = app.journal, task, f"journal:{task.uid}"
        self._place: tuple[int, int] | None = None

    async def look(self, now: float) -> Sequence[News]:
        try:
            if self._place is None:
                self._place = await self._journal.end_of(self._task)
                return []
            found = await self._journal.since(self._task, *self._place)
        except NotFound:
            return []
        self._place = (found.line, found.upto)
        if not found.calls:
            return []
        uid = self._task.uid

        def make(caller: Caller) -> Any:
            calls = calls_for(caller, found.calls)
            return {"topic": "journal", "uid": uid, "line": found.line, "upto": found.upto, "calls": calls}

        return [News((self._topic,), Message("entries", ("entries", uid, found.line, found.upto), make))]

    async def current(self) -> Sequence[Message]:
        return ()


class UnitChanges:
    """The units of one task."""

    every = 1.0

    def __init__(self, app: Perdure, task: Task) -> None:
        self._units, self._task, self._topic = app.units, task, f"units:{task.uid}"
        self._seen: dict[str, UnitRecord] = {}

    async def look(self, now: float) -> Sequence[News]:
        found = {one.uid: one for one in await self._units.page(task=self._task.id, limit=_MOST_UNITS)}
        before, self._seen = self._seen, found
        changed = [one for one in found.values() if before.get(one.uid) != one]
        return [News((self._topic,), self._message(one)) for one in changed]

    async def current(self) -> Sequence[Message]:
        await self.look(0.0)
        return [self._message(one) for one in self._seen.values()]

    def _message(self, unit: UnitRecord) -> Message:
        def make(caller: Caller) -> Any:
            return {"topic": "units", "task": self._task.uid, "unit": unit_for(caller, unit)}

        return Message("unit", ("unit", unit.uid), make)
