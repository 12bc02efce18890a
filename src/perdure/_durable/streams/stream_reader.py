"""Read a task's streams from any process.

This needs no lease and wakes no task. Readers see what was committed, so a follower of a stream never sees a piece
that a crash then takes back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import Struct

from perdure._durable.journal import read_line
from perdure._durable.streams.stream_writer import Marker, StoredPieces
from perdure._ground.bridge import Nap
from perdure._ground.ids import check_id
from perdure._model import FINISHED, Entry, name_of, open_entry
from perdure._store import HolderRow, Store, TaskRow
from perdure._tasks import Task, Tasks, current_row, store_of
from perdure.errors import Conflict, InvalidInput, NotFound

_LOOK_SECONDS = 0.02


class HasTasks(Protocol):
    """An app, async or blocking."""

    @property
    def tasks(self) -> Any: ...


class StreamPart(Struct, frozen=True, kw_only=True):
    """A part of a stream: `text` ends at `offset`, in characters from the stream's beginning."""

    text: str
    offset: int
    is_complete: bool  # nothing follows
    marker: Marker | None  # why it is incomplete; None also while its first producer is at work


async def read_stream(
    app: HasTasks | Tasks | Store, task_id: str | Task, name: str, *, after: int = 0, number: int | None = None
) -> StreamPart:
    """The new pieces of a stream after `after`. With `number`, the nth stream of that name; without, the latest.

    Raises:
        NotFound: no such task, or no such stream in it.
        InvalidInput: a negative offset, or a number below 1.
    """
    follower = _Follower(store_behind(app), task_id, name, number, after)
    await follower.look()
    if follower.path is None:
        raise NotFound("stream", name, follower.store.place, do="the task has not begun it yet")
    return await follower.part(after)


async def follow_stream(
    app: HasTasks | Tasks | Store, task_id: str | Task, name: str, *, after: int = 0, number: int | None = None
) -> AsyncIterator[StreamPart]:
    """Each part beyond `after` as it is written, by whichever process, until the stream or the task ends.

    To continue after an interruption, pass the last part's offset: nothing is left out and nothing is repeated.

    Raises:
        NotFound: no such task.
        Conflict: the task was rolled back, and with it the text that was read.
    """
    follower = _Follower(store_behind(app), task_id, name, number, after)
    while True:
        is_over = await follower.look()
        if follower.path is not None:
            part = await follower.part(after)
            is_over = is_over or part.is_complete
            if part.text or is_over:
                yield part
            after = part.offset
        if is_over:
            return
        await Nap(_LOOK_SECONDS)


class StreamInfo(Struct, frozen=True, kw_only=True):
    """A stream without its text."""

    name: str
    number: int  # among those of its name
    path: str
    length: int  # in characters
    is_complete: bool
    marker: Marker | None


async def list_streams(app: HasTasks | Tasks | Store, task: str | Task) -> list[StreamInfo]:
    """The streams of a task, in the order of their beginnings.

    Raises:
        NotFound: no such task.
    """
    follower = _Follower(store_behind(app), task, "", None)
    await follower.look()
    found: list[StreamInfo] = []
    for path in follower.paths:
        follower.path = path
        part = await follower.part(0)
        name = name_of(path).removeprefix("stream:")
        found.append(
            StreamInfo(
                name=name,
                number=1 + sum(one.name == name for one in found),
                path=path.removeprefix("|"),
                length=part.offset,
                is_complete=part.is_complete,
                marker=part.marker,
            )
        )
    return found


async def partial_streams(app: HasTasks | Tasks | Store, task_id: str) -> list[tuple[str, StreamPart]]:
    """The incomplete streams of a task, by name, each with its whole text and why it ends there."""
    follower = _Follower(store_behind(app), task_id, "", None)
    await follower.look()
    found = []
    for path in follower.paths:
        follower.path = path
        part = await follower.part(0)
        if part.marker is not None:
            found.append((name_of(path).removeprefix("stream:"), part))
    return found


class _Follower:
    """One reader's place in a journal: each entry is read once."""

    def __init__(self, store: Store, task_id: str | Task, name: str, number: int | None, after: int = 0) -> None:
        if after < 0 or (number is not None and number < 1):
            raise InvalidInput(
                f"a stream is read after={after}, number={number}",
                do="count characters from 0, and streams of one name from 1",
            )
        self._task_id = task_id if isinstance(task_id, Task) else check_id(task_id)
        self.store, self._name, self._number = store, name, number
        self.path: str | None = None
        self._row: TaskRow | None = None
        self._position = 0
        self._streams: dict[str, StoredPieces] = {}  # in the order of their beginning
        self._ended: dict[str, Entry] = {}
        self._epoch = 0

    @property
    def paths(self) -> list[str]:
        return list(self._streams)

    async def look(self) -> bool:
        """Read what is new. Returns whether the task has ended."""
        row = await row_of(self.store, self._task_id)
        if self._row is not None and (self._row.uid, self._row.line) != (row.uid, row.line):
            raise Conflict(f"task {row.id!r} was started anew or rolled back while its stream was read")
        if self._row is None:
            for position, entry in await read_line(self.store, row.uid, row.line):
                self._learn(position, entry)
        else:
            await self._read_on(row)
        self._row = row
        if self.path is None:
            named = [path for path in self._streams if name_of(path) == f"stream:{self._name}"]
            if self._number is None and named:
                self.path = named[-1]
            elif self._number is not None and len(named) >= self._number:
                self.path = named[self._number - 1]
        return row.status in FINISHED

    async def _read_on(self, row: TaskRow) -> None:
        while True:
            position = self._position + 1
            found = await self.store.query("read_entry", uid=row.uid, line=row.line, position=position)
            if not found:
                return
            ((sealed,),) = found
            self._learn(position, open_entry(sealed, row.uid, position, self.store.ring))

    def _learn(self, position: int, entry: Entry) -> None:
        self._position = position
        if entry.path.endswith("|pieces") and entry.op == "stream":
            self._streams.setdefault(entry.path.removesuffix("|pieces"), StoredPieces()).learn(entry)
            self._epoch = entry.epoch
        elif entry.op in ("stream", "streamed"):
            self._ended[entry.path] = entry

    async def part(self, after: int) -> StreamPart:
        assert self.path is not None and self._row is not None
        kept, end = self._streams[self.path], self._ended.get(self.path)
        is_complete = end is not None and end.kind == "result" and end.error is None
        marker = kept.marker
        if is_complete:
            marker = None
        elif end is not None:
            marker = Marker.TIMEOUT_PARTIAL if _is_timeout(end) else Marker.RECOVERED_FROM_PARTIAL
        elif marker is None and await self._is_orphan(self._row.uid):
            marker = Marker.RECOVERED_FROM_PARTIAL
        text = "".join(kept.pieces)[after:]
        return StreamPart(text=text, offset=max(after, kept.length), is_complete=is_complete, marker=marker)

    async def _is_orphan(self, uid: str) -> bool:
        """True if the attempt that wrote it has stopped working."""
        (holder,) = await self.store.rows(HolderRow, "read_holder", uid=uid)
        return holder.worker is None or holder.epoch != self._epoch


def _is_timeout(end: Entry) -> bool:
    return end.kind == "cut" or (end.error is not None and b"TimeoutError" in end.error)


async def row_of(store: Store, task_id: str | Task) -> TaskRow:
    """The row of a task, given by its id or its handle.

    Raises:
        NotFound: there is no such task.
    """
    if isinstance(task_id, Task):
        return await current_row(store, task_id.id, task_id.uid)
    row = await store.row(TaskRow, "get_task", namespace=store.namespace, id=check_id(task_id))
    if row is None:
        raise NotFound("task", task_id, store.place)
    return row


def store_behind(app: HasTasks | Tasks | Store) -> Store:
    """The store of an app."""
    if isinstance(app, Store):
        return app
    return store_of(app if isinstance(app, Tasks) else app.tasks)
