"""The sources of a feed: changed tasks, counts, the events and the journal of one task, units, workers.

A source is asked for news now and then, and answers with messages and the topics they belong to. It reads the library's
doors and holds only what it needs to tell new from old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from msgspec import structs

from perdure._durable import TaskCall, call_of_task, situation_by_uid, situations_of
from perdure._ground.clock import Clock, moment, to_ms
from perdure._model import Counts, TaskSummary
from perdure._tasks import Task
from perdure.errors import NotFound
from perdure.server.http import Caller
from perdure.server.live.messages import Message
from perdure.server.nouns.references import address_of
from perdure.server.nouns.task.task_list import summary_for
from perdure.server.shapes.cuts import cut
from perdure.server.shapes.inbox import pause_for
from perdure.server.shapes.live import calls_for, unit_for
from perdure.server.shapes.situation import situation_for, with_situation
from perdure.server.shapes.tasks import event_for
from perdure.server.telemetry import Figures
from perdure.types import InboxItem, InboxKind, Situation

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
_MOST_QUESTIONS = 200
_SITUATION_SECONDS = 2.0
Known: TypeAlias = Mapping[bool, Mapping[str, Situation]]


class News(NamedTuple):
    """A message, and the topics whose listeners get it. Without a message, they have to read their pages again."""

    topics: tuple[str, ...]
    message: Message | None


class Source(Protocol):
    """Something that is looked at while a topic has listeners."""

    every: float  # seconds between two looks, at least

    async def look(self, now: float) -> Sequence[News]:
        """The changes since the look before; the first look only notes the present state. `now` is the loop's time."""

    async def current(self) -> Sequence[Message]:
        """The first messages for a new listener."""


class TaskChanges:
    """The tasks of a namespace that have changed."""

    every = 0.0

    def __init__(self, app: Perdure, clock: Clock, audiences: Callable[[], set[bool]], figures: Figures) -> None:
        """`audiences` tells whether there are listeners with `data:read`, and without."""
        self._tasks, self._clock, self._audiences = app.tasks, clock, audiences
        self._figures = figures
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
        changed = [(item, self._seen.get(item.uid)) for item in items if self._is_news(item, now)]
        known = await self._situations([item for item, _ in changed])
        news = [one for item, before in changed for one in self._news(item, before, known, now)]
        news += [_gone(uid) for uid in gone if uid not in self._gone]
        self._told = {uid: at for uid, at in self._told.items() if uid in self._seen}
        self._gone = frozenset(gone)
        self.moves += bool(news)
        now_ms = self._clock.now_ms()
        for item, _ in changed:
            self._figures.observe("feed_lag_seconds", max(0, now_ms - to_ms(item.updated_at)) / 1000)
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

    def _is_news(self, item: TaskSummary, now: float) -> bool:
        before = self._seen.get(item.uid)
        if before == item:
            return False
        is_progress = before is not None and _without_progress(before) == _without_progress(item)
        if is_progress and now - self._told.get(item.uid, 0.0) < _PROGRESS_SECONDS:
            self.is_holding = True
            return False
        return True

    async def _situations(self, items: Sequence[TaskSummary]) -> Known:
        """Why these tasks are, or are not, running, for each audience that is there."""
        if not items:
            return {}
        return {reads: await situations_of(self._tasks, items, tells_data=reads) for reads in self._audiences()}

    def _news(self, item: TaskSummary, before: TaskSummary | None, known: Known, now: float) -> list[News]:
        self._seen[item.uid] = item
        found = {reads: by_uid[item.uid] for reads, by_uid in known.items() if item.uid in by_uid}
        news = [News(("tasks", f"task:{item.uid}"), _task(item, found))]
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


def _task(item: TaskSummary, situations: Mapping[bool, Situation]) -> Message:
    def make(caller: Caller) -> Any:
        summary, situation = summary_for(caller, item), situations.get(caller.reads_data)
        return {"topic": "tasks", "task": summary if situation is None else with_situation(summary, situation)}

    return Message("task", ("task", item.uid), make)


def _progress(item: TaskSummary) -> Message:
    def make(caller: Caller) -> Any:
        return {"topic": "task", "uid": item.uid, "progress": summary_for(caller, item).progress}

    return Message("progress", ("progress", item.uid), make)


def _gone(uid: str) -> News:
    topics = ("tasks", f"task:{uid}")
    return News(topics, Message("gone", ("task", uid), lambda _: {"topic": "tasks", "uid": uid}))


class CountChanges:
    """The counts of tasks, whenever they change."""

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
    """What happens to one task, and its situation, which also changes by what happens elsewhere: to its worker, say."""

    every = _WATCH_SECONDS

    def __init__(self, app: Perdure, task: Task) -> None:
        self._tasks, self._task, self._topic = app.tasks, task, f"task:{task.uid}"
        self._number: int | None = None
        self._situation: Mapping[bool, Situation] = {}
        self._call: TaskCall | None = None
        self._situation_due = 0.0

    async def look(self, now: float) -> Sequence[News]:
        try:
            if self._number is None:
                self._number = await last_event(self._tasks, self._task)
                await self._look_why()
                return []
            news = [News((self._topic,), one) for one in await self._events()]
            if news or now >= self._situation_due:
                self._situation_due = now + _SITUATION_SECONDS
                news += [News((self._topic,), one) for one in await self._look_why()]
        except NotFound:
            return []
        return news

    async def _look_why(self) -> list[Message]:
        before = self._situation
        self._situation = {
            reads: await situation_by_uid(self._tasks, self._task.uid, tells_data=reads) for reads in (True, False)
        }
        if self._situation == before:
            return []
        self._call = await call_of_task(self._tasks, self._task.uid)
        return [self._why()]

    def _why(self) -> Message:
        found, task, call = self._situation, self._task, self._call

        def make(caller: Caller) -> Any:
            shown = situation_for(caller, address_of(task.id, task.uid), found[caller.reads_data], call=call)
            return {"topic": "task", "uid": task.uid, "situation": shown}

        return Message("situation", ("situation", task.uid), make)

    async def _events(self) -> list[Message]:
        events = await self._tasks.events(self._task, after=self._number or 0, limit=_MOST_EVENTS)
        if events:
            self._number = events[-1].number
        uid = self._task.uid

        def message(event: Any) -> Message:
            def make(caller: Caller) -> Any:
                return {"topic": "task", "uid": uid, "event": event_for(caller, event)}

            return Message("event", ("event", uid, event.number), make)

        return [message(event) for event in events]

    async def current(self) -> Sequence[Message]:
        return [self._why()] if self._situation else ()


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

        return Message("unit", ("unit", unit.uid), make, is_personal=True)  # it says whether the writer is you


class InboxChanges:
    """The inbox: the number of open questions, and the questions asked and decided since the look before."""

    every = _COUNT_SECONDS

    def __init__(self, app: Perdure, changes: TaskChanges) -> None:
        self._inbox, self._changes = app.inbox, changes
        self._moves = -1
        self._count: Mapping[InboxKind, int] = {}
        self._open: dict[str, InboxItem] | None = None  # None: there are too many to tell one by one
        self._looks = 0

    async def look(self, now: float) -> Sequence[News]:
        self._looks += 1
        if self._moves == self._changes.moves and self._looks % 5:
            return []
        self._moves, before, count = self._changes.moves, self._open, self._count
        self._count = await self._inbox.count()
        page = await self._inbox.page(limit=_MOST_QUESTIONS)
        self._open = {item.id: item for item in page.items} if page.cursor is None else None
        opened, closed = [], []
        if before is not None and self._open is not None:
            opened = [item for id, item in self._open.items() if id not in before]
            closed = [await self._closed(id) for id in before if id not in self._open]
        if self._count == count and not opened and not closed:
            return []
        return [News(("inbox",), _inbox(self._count, opened, closed, number=self._looks))]

    async def _closed(self, id: str) -> Mapping[str, Any]:
        try:
            answer = (await self._inbox.get(id)).answer
        except NotFound:
            answer = None
        return {"id": id, "by": answer.by if answer else "", "choice": answer.decision if answer else ""}

    async def current(self) -> Sequence[Message]:
        return [_inbox(self._count, [], [], number=0)]


def _inbox(count: Mapping[InboxKind, int], opened: Sequence[InboxItem], closed: Sequence[Any], number: int) -> Message:
    def make(caller: Caller) -> Any:
        shown = [cut(pause_for(caller, item), f"/v1/inbox/{item.id}") for item in opened]
        return {"topic": "inbox", "count": count, "opened": shown, "closed": closed}

    return Message("inbox", ("inbox", number), make)


class WorkerChanges:
    """The processes that use the store."""

    every = _SLOW_SECONDS

    def __init__(self, app: Perdure) -> None:
        self._workers = app.workers
        self._seen: Sequence[Any] = ()

    async def look(self, now: float) -> Sequence[News]:
        before, self._seen = self._seen, [_steady(one) for one in await self._workers.list()]
        return [News(("operate",), self._message())] if self._seen != before else []

    async def current(self) -> Sequence[Message]:
        return [self._message()]

    def _message(self) -> Message:
        seen = self._seen
        return Message("operate", "operate", lambda _: {"topic": "operate", "workers": seen})


def _steady(worker: Any) -> Mapping[str, Any]:
    """A worker without what changes at every look."""
    return {name: value for name, value in structs.asdict(worker).items() if name != "beat_age"}
