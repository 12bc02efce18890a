"""The progress of a step, so that its next attempt continues there.

Inside a step, `progress.mark(cursor=…)` stores how far it got, and `progress.cursor` is the last cursor stored, by this
attempt or by the interrupted one. The step decides what a cursor is: a byte, an id, a page token.

Marks are journal entries, but marks that follow each other quickly are written as one, the last: within 20 ms, or a
two-thousandth of the step's time if that is more, up to 1 s. So a loop can mark every item, and a step of ten hours
leaves about forty thousand entries. After a crash at most one item is repeated if an item takes longer than that time;
otherwise the items of that time are. With flush=True the mark is on disk when the call returns, and at most the one
item under way is repeated.

A mark alone cannot make an item run exactly once: the process may die between the item and its mark. It is exact where
the cursor is committed with the work, or can be read from the target; loops.py does both.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from perdure._durable.attempt import Attempt, current
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._model import Entry, Progress, name_of, progress_of
from perdure._store import Write
from perdure._tasks import held_lease, read_progress
from perdure.errors import InvalidInput, PerdureError

Json = Any

# The age an entry may reach before the next body waits for it (attempt.py).
WRITTEN_EVERY = 0.02
WRITTEN_AT_MOST = 2000  # about, while the step's age doubles
LONGEST_PACE = 1.0  # items that take longer are never repeated together, however old the step is
# Progress that people look at need not be newer.
SHOWN_EVERY = 0.5


def cursor() -> Json:
    """The last cursor that the running step marked, in this attempt or an earlier one; None if there is none."""
    scope = current.get()
    if scope is None or not scope.is_body:
        return None
    return scope.attempt.part(_Marks).of(scope.path).cursor


async def mark(*, cursor: Json = None, done: int | None = None, total: int | None = None, flush: bool = False) -> None:
    """Store `cursor` for the next attempt at this step; show `done` of `total` to people.

    Without a cursor the last one stays. Without a task nothing is stored.

    Raises:
        InvalidInput: called outside a step, or the numbers are not possible.
        NotStorable: the cursor would not be read back as it is.
        LeaseLost: another attempt has taken over; stop.
    """
    own = _mark_here()
    if own is None:
        return
    if done is not None and not own.marks.knows_others:
        await own.marks.know_others()
    write = own.offer(cursor, done, total, flush)
    if write is not None:
        await write
        own.written()


def plain_mark(*, cursor: Json = None, done: int | None = None, total: int | None = None, flush: bool = False) -> None:
    """Store `cursor` for the next attempt at this step; with `flush` it is on disk when this returns.

    `progress.mark` of perdure.sync, for a step that is a plain `def`.
    """
    own = _mark_here()
    if own is None:
        return
    if done is not None and not own.marks.knows_others:
        drive(own.marks.know_others())
    write = own.offer(cursor, done, total, flush)
    if write is not None:
        own.attempt.pipeline.wait_here(write)
        own.written()


def _mark_here(of: str = "progress") -> _Mark | None:
    scope = current.get()
    if scope is None:
        return None
    if not scope.is_body:
        raise InvalidInput(
            "progress.mark is called outside a step",
            do="mark inside a step: the calls between two steps are recorded anyway",
        )
    return scope.attempt.part(_Marks).of(scope.path, of)


class Place:
    """The place of a loop in this step. It is stored beside the step's own cursor, which the step's code can set too.

    Raises:
        InvalidInput: another loop has this name; this one would continue where that one ended, and leave items out.
    """

    def __init__(self, name: str, flush: bool = False) -> None:
        scope = current.get()
        if scope is not None and scope.is_body and scope.track.count(f"loop {name}") > 1:
            raise InvalidInput(
                f"a second loop of this step is called {name!r}",
                kept="what the first one has done",
                do="give each loop its own name=; a loop inside a loop needs one per round",
            )
        self._name, self._flush = name, flush
        is_step = scope is not None and scope.is_body
        mark = _mark_here(of="loops") if is_step else None
        self.found: Json = None if mark is None else (mark.cursor or {}).get(name)

    async def mark(self, place: Json, done: int, total: int | None = None, *, flush: bool = False) -> None:
        """Store this for the next attempt, as progress.mark does."""
        mark = _mark_here(of="loops")
        if mark is None:
            return
        if not mark.marks.knows_others:
            await mark.marks.know_others()
        write = mark.offer({**(mark.cursor or {}), self._name: place}, done, total, flush or self._flush)
        if write is not None:
            await write
            mark.written()


class _Marks:
    """The cursors of one attempt, by the step's path: its own, and the places of its loops."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._found = {entry.path: entry for _, entry in attempt.entries if entry.op == "progress"}
        self._marks: dict[str, _Mark] = {}
        self.knows_others = False

    async def know_others(self) -> None:
        """Read the progress of the task's other operations, which is shown beside this step's."""
        attempt = self._attempt
        hold = held_lease(attempt.store, attempt.uid)
        if attempt.task is not None and hold is not None:
            before = await read_progress(attempt.task)
            hold.progress = hold.progress or before  # other code of this process may have marked meanwhile
        self.knows_others = True

    def of(self, path: str, kind: str = "progress") -> _Mark:
        kept = f"{path}|{kind}"
        mark = self._marks.get(kept)
        if mark is None:
            mark = self._marks[kept] = _Mark(self, self._attempt, path, kept, self._found.get(kept))
        return mark


class _Mark:
    """The cursor of one step."""

    def __init__(self, marks: _Marks, attempt: Attempt, path: str, kept: str, found: Entry | None) -> None:
        self.marks, self.attempt, self._path, self._kept = marks, attempt, path, kept
        self.cursor: Json = None if found is None or found.value is None else codec.decode(found.value)
        self._began = time.monotonic()
        self._written = Coalesced(attempt, self._write, self._pace)
        self._shown = Coalesced(attempt, self._show, lambda: SHOWN_EVERY)

    def offer(self, cursor: Json, done: int | None, total: int | None, flush: bool) -> Write | None:
        """Have it stored soon. Returns the write, if it was written now."""
        attempt = self.attempt
        percent = progress_of(name_of(self._path), None, done, total)
        attempt.fence.check()
        data = None
        if cursor is not None:
            data, self.cursor = codec.round_trip(cursor)
        if done is not None:
            self._shown.offer((percent, done, total), at_once=done == total)
        return None if data is None else self._written.offer(data, at_once=flush)

    def written(self) -> None:
        self.attempt.fence.check()
        crash.place("progress.marked")

    def _pace(self) -> float:
        aged = (time.monotonic() - self._began) / WRITTEN_AT_MOST
        return max(WRITTEN_EVERY, min(aged, LONGEST_PACE))

    def _write(self, data: bytes) -> Write:
        attempt = self.attempt
        now = attempt.store.clock.now_ms()
        entry = Entry("result", "progress", self._kept, b"", data, at=now, epoch=attempt.epoch)
        return attempt.record(entry, urgent=True)[1]

    def _show(self, shown: tuple[float | None, int | None, int | None]) -> Write:
        attempt, store = self.attempt, self.attempt.store
        percent, done, total = shown
        at = store.clock.now_ms()
        seen = Progress(
            operation=name_of(self._path), percent=percent, cursor=self.cursor, done=done, total=total, at=moment(at)
        )
        if (hold := held_lease(store, attempt.uid)) is not None:
            seen = hold.progress = seen.beside(hold.progress)
        params = {"progress": store.seal(attempt.uid, "progress", seen, Progress), "at": at}
        write = store.verb("mark_progress", attempt.uid, params, key=attempt.task_id, fence=attempt.fence)
        return store.committer.submit(write, urgent=False)


class Coalesced:
    """Writes the first item it is offered at once, and of items that follow quickly only the last.

    A held item is written when its time has come, even if nothing more is offered; it is dropped when all steps of the
    attempt have ended by then. Steps of a plain function offer from its thread.
    """

    def __init__(self, attempt: Attempt, write: Callable[[Any], Write], pace: Callable[[], float]) -> None:
        self._attempt, self._write, self._pace = attempt, write, pace
        self._last = float("-inf")
        self._held: Any = None
        self._is_timed = False
        self._mutex = threading.Lock()

    def offer(self, item: Any, *, at_once: bool = False) -> Write | None:
        """Returns the write, if it was written now."""
        with self._mutex:
            now = time.monotonic()
            left = self._last + self._pace() - now
            if at_once or left <= 0:
                self._last, self._held = now, None
                return self._write(item)
            self._held = item
            if not self._is_timed:
                self._is_timed = True
                self._attempt.on_loop(lambda: self._attempt.loop.call_later(left, self._when_due))
            return None

    def _when_due(self) -> None:
        with self._mutex:
            self._is_timed = False
            item, self._held = self._held, None
            if item is not None and (self._attempt.activity.bodies or self._attempt.activity.has_effects):
                with suppress(PerdureError):  # the attempt is closed; its next call raises
                    self._last = time.monotonic()
                    self._write(item)
