"""A handle on a task that was started: whether it is done, and its result.

All waits on one event loop share a single query: however many tasks are waited for, one look finds those that ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Generator
from contextvars import Context
from datetime import timedelta
from typing import Any, Generic, TypeVar

from msgspec import Struct

from perdure._durable.attempt import Scope, current, recorded_call, waiting
from perdure._durable.declare import DurableFunction
from perdure._durable.lifecycle.ends import add_failure_note
from perdure._durable.lifecycle.run_waits import asked_of_a_person
from perdure._durable.values import declared_here, decode_error
from perdure._ground.bridge import Hop
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id
from perdure._ground.secrets import envelope
from perdure._ground.traceback_text import remember_trace
from perdure._model import FINISHED
from perdure._store import LEAST_GAP, CallRow, Store, TaskRow
from perdure._tasks import Task, Tasks, current_row, find_row, store_of, task_by_uid
from perdure.errors import Conflict, NotFound, PerdureError, TaskFailed, TimedOut

R = TypeVar("R")
QUIET_SECONDS = 2.0  # how long to wait for a task without a worker before saying so
_LATER_SECONDS = 60.0  # and how often to look again after that
log = logging.getLogger("perdure.durable")


def result_of(store: Store, row: TaskRow, function: DurableFunction[..., Any]) -> Any:
    """The value a finished task returned; raises the exception it failed with."""
    if row.status == "completed" and row.result is not None:
        return store.unseal(row.uid, "result", row.result, function.signature.returns)
    error = store.unseal(row.uid, "error", row.error) if row.error else None
    if isinstance(error, dict) and isinstance(error.get("raised"), bytes):
        raise raised_earlier(error["raised"], row.id, str(error.get("traceback") or ""))
    raise TaskFailed(row.id, row.status, "completed", error)


class Outcome(Struct, frozen=True):
    """What a task ended with, as it was recorded."""

    status: str
    recorded: bytes | None  # of a completed task its result; of a failed one the exception, if it can be rebuilt
    error: Any = None


async def outcome_of(task: Task) -> Outcome:
    """
    Raises:
        Conflict: the task has not ended.
    """
    store = store_of(task)
    row = await current_row(store, task.id, task.uid)
    if row.status not in FINISHED:
        raise Conflict(f"task {row.id!r} is {row.status}: it has no outcome yet", do="wait for its end")
    if row.status == "completed" and row.result is not None:
        return Outcome(row.status, envelope.unseal(row.result, kind="result", bound_to=row.uid, ring=store.ring))
    error = store.unseal(row.uid, "error", row.error) if row.error else None
    raised = error.pop("raised", None) if isinstance(error, dict) else None
    return Outcome(row.status, raised if isinstance(raised, bytes) else None, error)


def value_of(outcome: Outcome, id: str, function: DurableFunction[..., R]) -> R:
    """The value that a task returned; raises the exception it failed with."""
    if outcome.status == "completed":
        recorded = outcome.recorded
        found: R = None if recorded is None else codec.decode(recorded, function.signature.returns)  # type: ignore[assignment]
        return found
    if outcome.recorded is not None and isinstance(outcome.error, dict):
        raise raised_earlier(outcome.recorded, id, str(outcome.error.get("traceback") or ""))
    raise TaskFailed(id, outcome.status, "completed", outcome.error)


def raised_earlier(recorded: bytes, id: str, traceback: str) -> BaseException:
    """The exception that a task failed with, as it was recorded."""
    raised = decode_error(recorded, declared_here())
    remember_trace(raised, traceback)
    # Nothing ran now: a reader who has mended the code must not look for an error that is no longer there.
    add_failure_note(raised, id, "failed with this earlier")
    return raised


def _moment(store: Store, end: float) -> float:
    """How long to wait now, at most, until an end that is due at `end`."""
    return max(min(end - store.clock.boottime(), store.clock.longest_wait), 0.0)


class Handle(Generic[R]):
    """A task that was started, whichever process carries it on."""

    def __init__(self, tasks: Tasks, id: str, uid: str, function: DurableFunction[..., R]) -> None:
        self.id = id
        self._tasks, self._uid, self._function = tasks, uid, function
        self._store = store_of(tasks)

    async def task(self) -> Task:
        return await task_by_uid(self._tasks, self._uid)

    async def is_done(self) -> bool:
        """True if the task has ended in any way. Inside a durable function the answer is recorded."""
        scope = current.get()
        if scope is None or scope.is_body:
            return await self._is_over()
        found: bool = await recorded_call(scope, f"look at {self.id}", bool, self._is_over)
        return found

    async def _is_over(self) -> bool:
        return not await self._store.query("find_live", uids=json.dumps([self._uid]))

    async def result(self, timeout: Duration | None = None) -> R:
        """Wait for the task and return its result. Inside a durable function the result is recorded.

        Raises:
            TimedOut: the task has not ended in time; it continues.
            TaskFailed: the task failed with an exception that cannot be rebuilt, or was cancelled.
        """
        limit = require_timedelta("timeout", timeout)
        scope = current.get()
        if scope is not None and not scope.is_body:
            return await self._recorded(scope)
        found: R = result_of(self._store, await self._finished(limit), self._function)
        return found

    async def _finished(self, timeout: timedelta | None = None) -> TaskRow:
        store = self._store
        end = None if timeout is None else store.clock.boottime() + timeout.total_seconds()
        while True:
            (row,) = await store.rows(TaskRow, "get_task_by_uid", uid=self._uid)
            if row.status in FINISHED:
                return row
            if end is not None and store.clock.boottime() >= end:
                raise TimedOut(
                    f"task {self.id!r} is {row.status} after {timeout}",
                    kept="the task; it continues",
                    do=await _why_not_at_work(store, self._uid) or await asked_of_a_person(store, row),
                )
            # With a time-out, wait in short pieces, because a test can move the clock. Without one, wait for ever, with
            # one query for all awaited tasks.
            if end is not None:
                await TaskEnd(store, self._uid, _moment(store, end))
            else:
                await self._ended()

    async def _ended(self) -> None:
        """Wait for the end. If it takes long, log once that no worker has the task, or that a person is asked."""
        store, told, patience = self._store, "", QUIET_SECONDS
        look_at = store.clock.boottime() + patience
        while not await TaskEnd(store, self._uid, patience):
            if store.clock.boottime() < look_at:
                continue
            word = await self._why_it_takes_long(is_new=patience != _LATER_SECONDS)
            if word and word != told:
                log.warning("%s", word)
                told = word
            patience = _LATER_SECONDS
            look_at = store.clock.boottime() + patience

    async def _why_it_takes_long(self, *, is_new: bool) -> str:
        store = self._store
        (row,) = await store.rows(TaskRow, "get_task_by_uid", uid=self._uid)
        if row.status == "paused":
            return await asked_of_a_person(store, row)
        why = await _why_not_at_work(store, self._uid) if is_new else ""
        return f"waiting for task {self.id}, which no worker carries on: {why}" if why else ""

    async def _recorded(self, scope: Scope) -> R:
        async def child() -> R:
            with waiting(scope.attempt):
                row = await self._finished()
            found: R = result_of(self._store, row, self._function)
            return found

        found: R = await recorded_call(scope, f"result of {self.id}", self._function.signature.returns, child)
        return found


async def handle_on(tasks: Tasks, id: str, function: DurableFunction[..., Any]) -> Handle[Any]:
    """A handle on a task that any process has started.

    Raises:
        NotFound: there is no such task.
        Conflict: the task belongs to another function.
    """
    row = await find_row(store_of(tasks), check_id(id))
    if row is None:
        raise NotFound("task", id, store_of(tasks).place)
    found = await store_of(tasks).rows(CallRow, "get_call", uid=row.uid)
    if not found or found[0].function != function.name:
        what = f"belongs to {found[0].function!r}" if found else "has no durable function"
        raise Conflict(f"task {id!r} {what}, not {function.name!r}", do="name its own function")
    return Handle(tasks, id, row.uid, function)


# ── waiting for ends ─────────────────────────────────────────────────────────────────────────────


class TaskEnd(Hop[bool]):
    """Awaits the end of a task for at most `seconds`. Gives whether it has ended."""

    __slots__ = ("_seconds", "_store", "_uid")

    def __init__(self, store: Store, uid: str, seconds: float) -> None:
        self._store, self._uid, self._seconds = store, uid, seconds

    def block(self) -> bool:
        bell = self._store.bell
        with bell.listening():
            moves = bell.moves
            is_live = bool(self._store.engine.query("find_live", {"uids": json.dumps([self._uid])}))
            if is_live:
                bell.moved_since(moves, self._seconds).block()
        return not is_live

    def on_loop(self) -> Generator[Any, None, bool]:
        return (yield from self._wait().__await__())

    async def _wait(self) -> bool:
        loop = asyncio.get_running_loop()
        waits = _waits_of(self._store, loop)
        future = waits.add(self._uid)
        try:
            await asyncio.wait({future}, timeout=self._seconds)
            return future.done() and future.result()
        finally:
            waits.leave(self._uid, future)


_all: dict[tuple[int, int], _Waits] = {}


def _waits_of(store: Store, loop: asyncio.AbstractEventLoop) -> _Waits:
    key = (id(store.engine), id(loop))
    found = _all.get(key)
    if found is None or found.loop is not loop or found.store.engine is not store.engine:
        for old in [old for old, waits in _all.items() if waits.loop.is_closed()]:
            del _all[old]
        found = _all[key] = _Waits(store, loop)
    return found


class _Waits:
    """The tasks that are waited for on one loop, and the asyncio task that looks for all of them."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store, self.loop = store, loop
        self._futures: dict[str, set[asyncio.Future[bool]]] = {}
        self._looking: asyncio.Task[None] | None = None

    def add(self, uid: str) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = self.loop.create_future()
        self._futures.setdefault(uid, set()).add(future)
        if self._looking is None:
            # In an empty context: it must not belong to the durable function that happens to wait first.
            self._looking = Context().run(self.loop.create_task, self._look())
        return future

    def leave(self, uid: str, future: asyncio.Future[bool]) -> None:
        waiting = self._futures.get(uid)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._futures[uid]

    async def _look(self) -> None:
        bell = self.store.bell
        try:
            with bell.listening():
                while self._futures:
                    moves, began = bell.moves, time.monotonic()
                    await self._look_once()
                    if self._futures:
                        # Even when thousands of tasks are waited for, looking takes at most a fifth of the time.
                        await bell.moved_since(moves, gap=max(LEAST_GAP, 4 * (time.monotonic() - began)))
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        asked = list(self._futures)
        try:
            rows = await self.store.query("find_live", uids=json.dumps(asked))
        except PerdureError as error:
            for future in [future for waiting in self._futures.values() for future in waiting if not future.done()]:
                future.set_exception(error)
            self._futures.clear()
            return
        for uid in set(asked) - {uid for (uid,) in rows}:
            for future in self._futures.pop(uid, ()):
                if not future.done():
                    future.set_result(True)


async def _why_not_at_work(store: Store, uid: str) -> str:
    from perdure._durable.inspect import why_not_at_work  # few programs have to ask

    return await why_not_at_work(store, uid)
