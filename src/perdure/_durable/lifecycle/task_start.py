"""Start the task of a durable function: `app.start`, and children.

A task started inside a durable function is its child. The start is recorded before the code continues, so a replay
starts nothing twice, and the child lives on when its parent's process dies.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from shlex import quote
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.attempt import Scope, current, recorded_call, waiting
from perdure._durable.declare import DurableFunction
from perdure._durable.inspect import why_not_at_work
from perdure._durable.lifecycle.attach_check import check_same
from perdure._durable.lifecycle.run_waits import asked_of_a_person
from perdure._durable.lifecycle.task_ends import TaskEnd
from perdure._durable.models import Budget, seal_budget
from perdure._durable.values import declared_here, decode_error
from perdure._ground import envelope
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._ground.traceback_text import remember_trace
from perdure._model import FINISHED, START, Config
from perdure._replay import digest
from perdure._store import Store, TaskRow
from perdure._tasks import Task, Tasks, find_row, insert_task, store_of, task_by_uid
from perdure.errors import Conflict, InvalidInput, NotFound, TaskFailed, TimedOut

R = TypeVar("R")
LOOK_SECONDS = 0.02
QUIET_SECONDS = 2.0  # how long to wait for a task without a worker before saying so
_LATER_SECONDS = 60.0  # and how often to look again after that
_AROUND = "PERDURE_TASK"
log = logging.getLogger("perdure.durable")


class Beginning(Struct, gc=False):
    """What a task starts with. An attempt in the same process uses it instead of reading the store."""

    arguments: bytes
    budget: Budget | None
    deadline_at: int | None = None
    copies: dict[str, Any] | None = None  # the decoded arguments, not handed out yet


async def start(
    tasks: Tasks,
    id: str,
    function: DurableFunction[..., Any],
    args: Any,
    kwargs: Any,
    *,
    parent_uid: str | None = None,
    here: bool = False,
    is_taken: bool = False,
    tags: Mapping[str, str] = {},
) -> tuple[Task, Beginning]:
    """The task of this call. It is made now if its id is free. `check_call` has validated id and function.

    With `here`, this process claims it at once. With `is_taken`, the id was found to be in use a moment ago.

    Raises:
        Conflict: the id belongs to another function, or to a call with other arguments.
        NotStorable: an argument cannot be stored; nothing was written.
    """
    store, options = store_of(tasks), function.chosen
    arguments, copies = function.signature.keep_arguments(args, kwargs)
    timeout = options.timeout or (options.config.timeout if options.config is not None else None)
    deadline_at = None if timeout is None else await deadline_of(store, timeout)
    beginning = Beginning(arguments, options.budget, deadline_at, copies)
    not_before = await deadline_of(store, options.debounce) if options.debounce is not None else None
    if parent_uid is None and _AROUND in os.environ:
        parent_uid = await _task_around(tasks)

    def call(uid: str) -> dict[str, Any]:
        return {
            "function": function.name,
            "function_version": function.version,
            "arguments": envelope.seal(arguments, "arguments", uid, store.ring),
            "queue": options.queue,
            "priority": options.priority,
            "parent_uid": parent_uid,
            "call_key": options.key,
            "not_before": not_before,
            "deadline_at": beginning.deadline_at,
            "budget": seal_budget(store, uid, options.budget),
        }

    config = options.config
    if options.dependency_policy != "wait":
        config = replace(config or Config(), dependency_policy=options.dependency_policy)
    what: dict[str, Any] = {"name": function.name, "depends_on": options.depends_on, "config": config, "call": call}
    what |= {"tags": tags, "origin": {"module": function.module}}
    if here and parent_uid is None and not tags:
        what["alike"] = function.alike
    while True:
        made = None if is_taken else await insert_task(tasks, "start_function", id, {}, here=here, **what)
        if made is not None:
            return made, beginning
        is_taken = False
        row = await find_row(tasks, id)
        if row is not None:
            if options.debounce is None or not await _postpone(store, row, function, call(row.uid)):
                await check_same(store, row, function, arguments)
            return await task_by_uid(tasks, row.uid), beginning


def check_call(id: object, function: Any) -> DurableFunction[..., Any]:
    """Returns the function, or refuses a usual mistake with an error that names it.

    Raises:
        InvalidInput: not a durable function, or id and function are swapped.
    """
    if type(id) is str and isinstance(function, DurableFunction):
        check_id(id)
        return function
    if isinstance(id, DurableFunction):
        name = getattr(id.function, "__name__", id.name)
        raise InvalidInput(f"{name} is given where the task's id belongs", do=f"the id comes first: {_example(name)}")
    check_id(id)
    inner = getattr(function, "__func__", None)
    if isinstance(inner, DurableFunction):  # a class method, from Python 3.13 on
        function = inner.__get__(function.__self__)
    if not isinstance(function, DurableFunction):
        raise _not_durable(function)
    return function


def _not_durable(given: Any) -> InvalidInput:
    name = getattr(given, "__name__", "function")
    if inspect.iscoroutine(given):
        given.close()  # else Python warns that it was never awaited
        return InvalidInput(
            f"{name} was called, and its coroutine is given where the function belongs",
            do=f"give the function itself, then its arguments: {_example(name)}",
        )
    if not callable(given):
        return InvalidInput(
            f"{given!r:.100} is not a durable function",
            do=f"give the function itself, not what it returns, then its arguments: {_example(name)}",
        )
    if isinstance(given, partial):
        name = getattr(given.func, "__name__", "function")
        return InvalidInput(
            f"a partial of {name} is given where the function belongs; its arguments would not be stored",
            do=f"give the durable function itself, then all its arguments: {_example(name)}",
        )
    if name == "<lambda>":
        return InvalidInput("a lambda is not a durable function", do="write it as a def with @durable above")
    return InvalidInput(f"{name} is not a durable function", do=f"put @durable above `def {name}`")


def _example(name: str) -> str:
    return f'app.run("my-task", {name}, …)'


async def _task_around(tasks: Tasks) -> str | None:
    """The uid of the task whose command runs this process, if `perdure run` started it."""
    around = os.environ.get(_AROUND)
    row = await find_row(tasks, around) if around else None
    return row.uid if row is not None else None


async def deadline_of(store: Store, timeout: timedelta) -> int:
    """When the time-out of a task that starts now is over, in milliseconds since the epoch."""
    return await store.wall_ms() + timeout // timedelta(milliseconds=1)


async def _postpone(store: Store, row: TaskRow, function: DurableFunction[..., Any], call: Mapping[str, Any]) -> bool:
    """Debounce: replace the call of a task that was not begun yet by this one. Returns whether that was possible."""
    rows = await store.query("get_call", uid=row.uid)
    if not rows or rows[0][:2] != (function.name, function.version):
        return False
    params = {
        **store.event(row.uid, "postponed", {}),
        "arguments": call["arguments"],
        "not_before": call["not_before"],
    }
    return await store.verb("postpone", row.uid, params, key=row.id) is not None


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def result_of(store: Store, row: TaskRow, function: DurableFunction[..., Any]) -> Any:
    """The value a finished task returned; raises the exception it failed with."""
    if row.status == "completed" and row.result is not None:
        return store.unseal(row.uid, "result", row.result, function.signature.returns)
    error = store.unseal(row.uid, "error", row.error) if row.error else None
    if isinstance(error, dict) and isinstance(error.get("raised"), bytes):
        raised = decode_error(error["raised"], declared_here())
        remember_trace(raised, str(error.get("traceback") or ""))
        # Nothing ran now: a reader who has mended the code must not look for an error that is no longer there.
        raised.add_note(f"perdure: task {row.id!r} failed with this earlier; its finished steps are kept")
        raised.add_note(f"  do:   `perdure resume {quote(row.id)}` begins a new attempt with the current code")
        raise raised
    raise TaskFailed(row.id, row.status, "completed", error)


def _moment(store: Store, end: float) -> float:
    """How long to wait now, at most, for an end that is due at `end`."""
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
        """Whether the task has ended, in whichever way. Inside a durable function the answer is recorded."""
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
            row = TaskRow(*(await store.query("get_task_by_uid", uid=self._uid))[0])
            if row.status in FINISHED:
                return row
            if end is not None and store.clock.boottime() >= end:
                raise TimedOut(
                    f"task {self.id!r} is {row.status} after {timeout}",
                    kept="the task; it continues",
                    do=await why_not_at_work(store, self._uid) or await asked_of_a_person(store, row),
                )
            # With a time-out, wait in short pieces, because a test may move the clock. Without one, wait for ever,
            # with one query for all tasks that are waited for.
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
        row = TaskRow(*(await store.query("get_task_by_uid", uid=self._uid))[0])
        if row.status == "paused":
            return await asked_of_a_person(store, row)
        why = await why_not_at_work(store, self._uid) if is_new else ""
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
    row = await find_row(tasks, check_id(id))
    if row is None:
        raise NotFound("task", id, store_of(tasks).place)
    found = await store_of(tasks).query("get_call", uid=row.uid)
    if not found or found[0][0] != function.name:
        what = f"belongs to {found[0][0]!r}" if found else "has no durable function"
        raise Conflict(f"task {id!r} {what}, not {function.name!r}", do="name its own function")
    return Handle(tasks, id, row.uid, function)


async def start_or_adopt(
    tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any
) -> Handle[Any]:
    """A handle on the task. Inside a durable function the start is recorded, and the task is its child."""
    function, scope = check_call(id, function), current.get()
    if scope is None or scope.is_body:
        task, _ = await start(tasks, id, function, args, kwargs)
        return Handle(tasks, id, task.uid, function)
    parent = scope.attempt.uid

    async def begin() -> str:
        await scope.attempt.flush()
        child, _ = await start(tasks, id, function, args, kwargs, parent_uid=parent)
        return child.uid

    uid = await recorded_call(scope, f"{START}{function.name}", str, begin, asked=digest((id,), {}))
    return Handle(tasks, id, uid, function)
